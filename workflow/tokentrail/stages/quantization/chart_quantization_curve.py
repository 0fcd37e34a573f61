"""Quality against bytes and against measured time, on one curve each."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.looks import Look, looks
from tokentrail.stages.quantization import quantized

TABLES = ("quantization",)
CAPTION = """
How far the predictions move (mean KL from the float32 model over the passage, or the prompt where no passage was read,
logarithmic) against what is saved: at the left the bytes of all weights (logarithmic), at the right the measured time
of one decode step, with its interval over the rounds. Full diamonds are packed: the codes were stored, and a kernel
that reads them ran. Hollow circles are simulated: rounded weights that ran in float32, with bytes by the formula and
no time. The cross is the model in bfloat16, the dashed line float32. The best marks are those at the lower left. A
name with a † is of a scheme on whose codes most weights stood before, as the source stores them: it rounds nothing,
and shows nothing of what its bits cost. Each row is one model.

It does not show what other kernels or other machines would do: the times are those of the kernels and the machine of
this run, one row at a time. A simulated scheme has no time at all, and whether it could be faster is not known. One
passage is no test of what a model can do.
"""
LINE = 16  # pixels that a name needs
MARKS = {
    "packed": ("diamond", "packed, ran from its codes"),
    "simulated": ("circle", "simulated, no time"),
    "unquantized": ("cross", "bfloat16"),
}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    title = "What do fewer bytes cost, and are they faster?"
    rows = quantized.whole_models(quantized.first_passage(tables["quantization"]))
    models = theme.drawn(rows.filter(pl.col("scheme") != "float32"), settings)
    if not models:
        return theme.finish(theme.nothing("No scheme is configured."), title, CAPTION, settings)
    of = looks(settings)
    blocks = [block(rows.filter(pl.col("model") == model), of[model], len(models)) for model in models]
    body = alt.vconcat(mark_key(set(rows["execution"])), *blocks, spacing=18).resolve_scale(
        x="independent", y="independent"
    )
    told = quantized.told(rows.filter(pl.col("scheme") != "float32"), settings, {"scheme": "", "execution": ""})
    return theme.finish(body, title, CAPTION, settings, told)


def block(rows: pl.DataFrame, look: Look, models: int) -> alt.HConcatChart:
    """One model: its schemes against bytes, and those that ran against time."""
    whole, rest = rows.filter(pl.col("scheme") == "float32"), rows.filter(pl.col("scheme") != "float32")
    domain = (rest["moved"].min() / 3, rest["moved"].max() * 1.8)
    height = 260 if models == 1 else 190
    sizes = pl.concat([rows["mib"], whole["mib"]])
    span = (sizes.min() / 1.25, sizes.max() * 1.25)
    by_bytes = alt.X(
        "mib:Q",
        scale=alt.Scale(type="log", domain=list(span), nice=False),
        axis=alt.Axis(title="weights, MiB (log)", values=theme.decades(*span), format="~g"),
    )
    panels = [panel(rest, whole, "mib", by_bytes, "Against bytes", domain, height, look, leftmost=True)]
    timed = rest.filter(pl.col("decode_ms").is_not_null())
    if timed.height:
        slowest = max(timed["decode_high_ms"].max(), whole["decode_ms"].max() or 0)
        by_time = alt.X(
            "decode_ms:Q",
            scale=alt.Scale(domain=[0, slowest * 1.25], nice=False),
            axis=alt.Axis(title="one decode step, ms", tickCount=5),
        )
        drawn = panel(timed, whole, "decode_ms", by_time, "Against time", domain, height, look, leftmost=False)
        panels.append(drawn)
    title = theme.heading(look.label) if models > 1 else theme.heading("")
    return alt.hconcat(*panels, spacing=24).properties(title=title)


def panel(
    rows: pl.DataFrame,
    whole: pl.DataFrame,
    saved: str,
    x: alt.X,
    heading: str,
    domain: tuple[float, float],
    height: int,
    look: Look,
    leftmost: bool,
) -> alt.LayerChart:
    shown = rows.select(
        pl.when(pl.col("on_codes") >= quantized.CIRCULAR)
        .then(pl.format("{} †", "scheme"))
        .otherwise("scheme")
        .alias("scheme"),
        *("execution", "families", "moved", "mib", "decode_ms", "decode_low_ms", "decode_high_ms"),
    )
    named = with_sides(shown.filter(pl.col("execution") != "simulated"), domain, height)
    y = alt.Y(
        "moved:Q",
        scale=alt.Scale(type="log", domain=list(domain), nice=False),
        axis=theme.log_axis(quantized.KL, domain, quantized.SMALLEST, shown=leftmost),
    )
    size = {"width": theme.panel_width(2, room=24), "height": height}
    rule = alt.Chart(whole.select(saved), **size).mark_rule(strokeDash=[4, 3], color=theme.MUTED).encode(x=x)
    base = alt.Chart(shown, **size).encode(x=x, y=y)
    tooltip = [
        "scheme:N",
        "families:N",
        "execution:N",
        alt.Tooltip("moved:Q", title="KL", format=".3g"),
        alt.Tooltip("mib:Q", title="MiB", format=",.1f"),
        alt.Tooltip("decode_ms:Q", title="decode, ms", format=".3g"),
    ]

    def marks(execution: str, **how) -> alt.Chart:
        kept = base.transform_filter(f"datum.execution === '{execution}'")
        return kept.mark_point(opacity=1, shape=MARKS[execution][0], **how).encode(tooltip=tooltip)

    spread = base.mark_rule(strokeWidth=1.4, color=look.colour)
    layers = [
        rule,
        *([spread.encode(x="decode_low_ms:Q", x2="decode_high_ms:Q")] if saved == "decode_ms" else []),
        marks("simulated", size=50, fill=theme.PAPER, strokeWidth=1.6, stroke=look.colour),
        marks("unquantized", size=70, filled=True, color=look.colour),
        marks("packed", size=90, filled=True, color=look.colour, stroke=theme.PAPER, strokeWidth=1),
    ]
    for below, dy in ((False, -6), (True, 8)):
        names = alt.Chart(named.filter(pl.col("below") == below), **size).encode(x=x, y=y, text="scheme:N")
        layers.append(names.mark_text(align="left", dx=8, dy=dy, fontSize=11, color=theme.INK))
    return alt.layer(*layers).properties(title=alt.TitleParams(heading, fontSize=12, offset=6))


def with_sides(rows: pl.DataFrame, domain: tuple[float, float], height: int) -> pl.DataFrame:
    """With `below`: a name goes below its mark if that of the mark above it would stand in its way."""
    pixels = -height / math.log(domain[1] / domain[0]) * pl.col("moved").log()
    near = (pixels - pixels.shift(1)).fill_null(height) < LINE
    return rows.sort("moved", descending=True, maintain_order=True).with_columns(below=near)


def mark_key(drawn: set[str]) -> alt.LayerChart:
    """What the marks that are drawn mean."""
    kinds = [kind for kind in MARKS if kind in drawn]
    frame = pl.DataFrame(
        [
            {"left": 6 + 220 * place, "text": 18 + 220 * place, "label": MARKS[kind][1], "shape": MARKS[kind][0]}
            | {"full": kind != "simulated"}
            for place, kind in enumerate(kinds)
        ]
    )
    place = alt.Scale(domain=[0, theme.WIDTH], nice=False)
    base = alt.Chart(frame, width=theme.WIDTH, height=16)
    marks = base.mark_point(size=60, opacity=1, strokeWidth=1.4, stroke=theme.MUTED).encode(
        x=alt.X("left:Q", scale=place, axis=None),
        shape=alt.Shape("shape:N", scale=None),
        fill=alt.condition("datum.full", alt.value(theme.MUTED), alt.value(theme.PAPER)),
    )
    return marks + base.mark_text(align="left").encode(x=alt.X("text:Q", scale=place, axis=None), text="label:N")
