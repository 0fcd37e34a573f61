"""Factorial experiments: how the entropy changes from one level of a factor to the other."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.result import extremes
from tokentrail.charts.select import ordered, with_factors

TABLES = ("distribution",)
CAPTION = """
Several changes of a prompt at once, in every combination: a panel for each factor, with its levels side by side. A thin
line joins two prompts that differ in this factor alone; the thick line joins the means over all combinations of the
other factors. A thick line that goes down says that the level at its right narrows the distribution, whatever else is
done; thin lines that do not run alongside it say that this depends on the rest.

It does not show whether the answer is right: a distribution can be narrow around a wrong token. Levels are single
texts, and another text of the same kind could do more or less.
"""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = tables["distribution"].filter(pl.col("experiment") != "")
    title = "What narrows the distribution?"
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing("No experiment is configured."), title, CAPTION, settings)
    top = rows["entropy_bits"].max() * 1.05
    parts = [
        panels(name, with_factors(rows.filter(pl.col("experiment") == name)), top, settings)
        for name in ordered(rows, "experiment")
    ]
    body = alt.vconcat(*parts, spacing=26)
    told = extremes(rows, "entropy_bits", "Entropy in bits", settings, {"experiment": "", "levels": ""})
    return theme.finish(theme.keyed(body, settings, models), title, CAPTION, settings, told)


def panels(name: str, rows: pl.DataFrame, top: float, settings: dict[str, Any]) -> alt.TopLevelMixin:
    """A panel for each factor of one experiment."""
    factors = [column.removeprefix("factor ") for column in rows.columns if column.startswith("factor ")]
    side_by_side = theme.columns(len(factors))
    drawn = [
        panel(rows, factor, place % side_by_side == 0, top, side_by_side, settings)
        for place, factor in enumerate(factors)
    ]
    return theme.grid(drawn, side_by_side).properties(title=theme.heading(f"Experiment {text.printable(name)}"))


def panel(
    rows: pl.DataFrame, factor: str, leftmost: bool, top: float, side_by_side: int, settings: dict[str, Any]
) -> alt.LayerChart:
    level = f"factor {factor}"
    others = [column for column in rows.columns if column.startswith("factor ") and column != level]
    shown = rows.select(
        "model",
        level=level,
        others=pl.concat_str([pl.lit(""), *others], separator=", "),
        entropy=pl.col("entropy_bits").round_sig_figs(4),
        target=pl.col("target_probability").round_sig_figs(3),
        top=pl.col("top1_token").map_elements(text.visible, pl.String),
    )
    means = shown.group_by("model", "level", maintain_order=True).agg(pl.col("entropy").mean())
    x = alt.X("level:N", sort=ordered(shown, "level"), axis=alt.Axis(title=None, labelAngle=0, labelLimit=110))
    y = alt.Y(
        "entropy:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title="entropy, bits" if leftmost else None, tickCount=5),
    )
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    dash = alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None)
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    size = {"width": theme.panel_width(side_by_side, room=50), "height": 220}
    tooltip = ["model:N", "level:N", "others:N", "entropy:Q", "target:Q", alt.Tooltip("top:N", title="most likely")]
    thin = alt.Chart(shown, **size).mark_line(strokeWidth=0.8)
    thin = thin.encode(x=x, y=y, color=colour, strokeDash=dash, detail="others:N")
    small = alt.Chart(shown, **size).mark_point(size=22, opacity=1, strokeWidth=1.1)
    small = small.encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip)
    thick = alt.Chart(means, **size).mark_line(strokeWidth=3).encode(x=x, y=y, color=colour, strokeDash=dash)
    big = alt.Chart(means, **size).mark_point(size=80, filled=True, opacity=1, stroke=theme.PAPER, strokeWidth=1)
    big = big.encode(x=x, y=y, color=colour, shape=shape)
    return alt.layer(thin, small, thick, big).properties(title=theme.heading(text.printable(factor)))
