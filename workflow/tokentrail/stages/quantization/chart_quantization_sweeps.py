"""How far the answers move with fewer bits, and with more weights to a scale."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.select import ordered
from tokentrail.stages.quantization import quantized

TABLES = ("quantization",)
CAPTION = """
How far the predictions move from the float32 model's when all matrices are rounded: the mean KL over the positions of
the passage, on a logarithmic scale, with its bootstrap interval over positions. At the left with fewer and fewer
bits, at the right with more and more weights that share one scale. The dashed line is one prompt, at its last
position; where no passage was read it is the only line, and solid. All of it is simulated: the weights are rounded,
read back and run in float32.

It does not show what is stored or how fast it runs. The passage is one text, and positions of one text are not
independent, so that the intervals are too narrow for texts of another kind. Below a millionth of a nat float32's own
rounding decides, and nothing is told apart.
"""
HEIGHT = 220


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    title = "How many bits do the answers need?"
    rows = quantized.plain(quantized.first_passage(tables["quantization"]))
    sweeps = {
        "bits": quantized.sweep(rows, "bits", "group_size"),
        "group_size": quantized.sweep(rows, "group_size", "bits"),
    }
    models = theme.drawn(pl.concat(sweeps.values()), settings)
    if not models:
        return theme.finish(theme.nothing("No sweep over bits or group sizes is configured."), title, CAPTION, settings)
    of_models = {over: frame.filter(pl.col("model").is_in(models)) for over, frame in sweeps.items()}
    everything = pl.concat(of_models.values())
    sizes = pl.concat([everything[name].drop_nulls() for name in ("moved", "low", "high")])
    prompts = everything["kl"].clip(lower_bound=quantized.SMALLEST)
    domain = (min(sizes.min(), prompts.min()) / 1.5, max(sizes.max(), prompts.max()) * 1.5)
    panels = [
        panel(frame, over, domain, settings, leftmost=number == 0)
        for number, (over, frame) in enumerate((over, frame) for over, frame in of_models.items() if frame.height)
    ]
    body = alt.vconcat(line_key(everything), alt.hconcat(*panels, spacing=24), spacing=6)
    told = quantized.told(
        everything.unique(["model", "bits", "group_size"], maintain_order=True),
        settings,
        {"bits": "bits", "group_size": "group size"},
    )
    return theme.finish(
        alt.vconcat(theme.key(settings, models, dashed=False), body, spacing=8) if len(models) > 1 else body,
        title,
        CAPTION,
        settings,
        told,
    )


def panel(
    rows: pl.DataFrame, over: str, domain: tuple[float, float], settings: dict[str, Any], leftmost: bool
) -> alt.LayerChart:
    """One sweep: a line for the passage with its intervals and a dashed one for the prompt; or the prompt's alone."""
    held = "group_size" if over == "bits" else "bits"
    fixed = rows[held].unique().sort().to_list()
    if over == "bits":
        heading, subtitle = "Fewer bits", f"groups of {spelled(fixed)}"
        axis = {"title": "bits of a code", "values": rows["bits"].unique().sort().to_list(), "format": "d"}
        scale = alt.Scale(domain=[rows["bits"].max() + 0.4, rows["bits"].min() - 0.4], nice=False)
    else:
        heading, subtitle = "Larger groups", f"{spelled(fixed)} bits"
        axis = {
            "title": "weights that share a scale (log)",
            "values": rows["group_size"].unique().sort().to_list(),
            "format": ",d",
        }
        scale = alt.Scale(
            type="log", domain=[rows["group_size"].min() / 1.3, rows["group_size"].max() * 1.3], nice=False
        )
    x = alt.X(f"{over}:Q", scale=scale, axis=alt.Axis(**axis, grid=False))

    def y(field: str) -> alt.Y:
        shown = theme.log_axis(quantized.KL, domain, quantized.SMALLEST, shown=leftmost)
        return alt.Y(f"{field}:Q", scale=alt.Scale(type="log", domain=list(domain), nice=False), axis=shown)

    slim = rows.select(
        "model",
        "scheme",
        "bits",
        "group_size",
        "moved",
        "low",
        "high",
        prompt_kl=pl.col("kl").clip(lower_bound=quantized.SMALLEST),
    )
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    base = alt.Chart(slim, width=theme.panel_width(2, room=24), height=HEIGHT).encode(x=x, color=colour)
    tooltip = [
        "model:N",
        "scheme:N",
        alt.Tooltip("bits:Q"),
        alt.Tooltip("group_size:Q", title="group size", format=",d"),
        alt.Tooltip("moved:Q", title="KL", format=".3g"),
        alt.Tooltip("prompt_kl:Q", title="KL on the prompt", format=".3g"),
    ]
    beside = base.mark_line(strokeWidth=1.2, strokeDash=[4, 3]).encode(y=y("prompt_kl"))
    layers = [
        *([beside] if passages(rows) else []),
        base.mark_rule(strokeWidth=2.2).encode(y=y("low"), y2="high:Q"),
        base.mark_line(strokeWidth=1.8).encode(y=y("moved")),
        base.mark_point(size=60, filled=True, opacity=1, stroke=theme.PAPER, strokeWidth=1).encode(
            y=y("moved"), shape=shape, tooltip=tooltip
        ),
    ]
    return alt.layer(*layers).properties(title=theme.heading(heading, subtitle))


def spelled(values: list[int]) -> str:
    return " or ".join(f"{value:,}" for value in values)


def passages(rows: pl.DataFrame) -> list[str]:
    return [name for name in ordered(rows, "passage") if name]


def line_key(rows: pl.DataFrame) -> alt.LayerChart:
    """What the two kinds of line are, or the one."""
    labels = [f"prompt {' / '.join(ordered(rows, 'prompt'))}, last position"]
    if read := passages(rows):
        labels.insert(0, f"passage {' / '.join(read)}, mean over positions")
    second = 60 + 6.2 * len(labels[0])
    entries = [{"left": second * at, "label": label, "dash": at > 0} for at, label in enumerate(labels)]
    frame = pl.DataFrame(entries).with_columns(right=pl.col("left") + 30, text=pl.col("left") + 38)
    place = alt.Scale(domain=[0, theme.WIDTH], nice=False)
    base = alt.Chart(frame, width=theme.WIDTH, height=16)
    line = base.mark_rule(strokeWidth=1.8, color=theme.MUTED).encode(
        x=alt.X("left:Q", scale=place, axis=None),
        x2="right:Q",
        strokeDash=alt.condition("datum.dash", alt.value([4, 3]), alt.value([1, 0])),
    )
    return line + base.mark_text(align="left").encode(x=alt.X("text:Q", scale=place, axis=None), text="label:N")
