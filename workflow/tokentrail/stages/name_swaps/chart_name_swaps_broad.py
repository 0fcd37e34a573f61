"""Name swaps of the broad sets, as distributions over names with their means."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import ordered, set_sizes

TABLES = ("name_swaps", "name_swaps_summary")
CAPTION = """
The same question over many names and several sentences. Each thin stroke is one name in one sentence, at the
probability of the first piece of the name that stands there; strokes above the line are names that are the model's
first answer, strokes below it are names that are not. The point is the mean over names, the thick line its bootstrap
interval; the count at the right says how often the name came first.

It does not show how much the choice of sentences matters: the interval covers the choice of names only, and the
sentences were written by hand and are few.
"""
FEWEST_NAMES = 13
"""Smaller sets are drawn name by name, by name_swaps."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    sizes = set_sizes(tables["name_swaps"])
    broad = [name for name, names in sizes.items() if names >= FEWEST_NAMES]
    swaps = tables["name_swaps"].filter(pl.col("set").is_in(broad))
    summary = tables["name_swaps_summary"].filter(pl.col("set").is_in(broad))
    title = "Is the name the answer for many names, in several sentences?"
    models = theme.drawn(swaps, settings)
    if not models:
        return theme.finish(
            theme.nothing(f"No set of at least {FEWEST_NAMES} names is configured."), title, CAPTION, settings
        )
    side_by_side = min(2, theme.columns(len(models)))
    panels = [
        panel(
            swaps.filter((pl.col("model") == model) & (pl.col("set") == name)),
            summary.filter((pl.col("model") == model) & (pl.col("set") == name)),
            looks(settings)[model],
            side_by_side,
            f"set {name}, {sizes[name]} names",
        )
        for name in broad
        for model in models
    ]
    told = extremes(
        summary.filter(pl.col("quantity") == "probability"),
        "mean",
        "Mean probability of the name's first piece",
        settings,
        {"set": "set", "template": "sentence"},
        text.probability,
    )
    return theme.finish(theme.grid(panels, side_by_side), title, CAPTION, settings, told)


def panel(swaps: pl.DataFrame, summary: pl.DataFrame, look: Look, side_by_side: int, where: str) -> alt.LayerChart:
    means = summary.filter(pl.col("quantity") == "probability")
    firsts = (
        summary.filter(pl.col("quantity") == "top1_rate")
        .select("template", "rows", rate="mean")
        .with_columns(
            label=pl.struct("rate", "rows").map_elements(
                lambda r: f"first in {round(r['rate'] * r['rows'])} of {r['rows']}", pl.String
            ),
            at=pl.lit(1.04),
        )
    )
    order = [*ordered(swaps, "template"), "all"]
    y = alt.Y("template:N", sort=order, axis=alt.Axis(title=None, grid=False, labelColor=theme.INK, labelLimit=130))
    x_axis = alt.Axis(
        values=[0, 0.5, 1] if side_by_side > 1 else [0, 0.2, 0.4, 0.6, 0.8, 1],
        format=".1f",
        title="probability of the name's first piece",
        titleAnchor="start",
        domain=False,
    )
    width = theme.panel_width(side_by_side, room=90)
    scale = alt.Scale(domain=[0, 1.04 + 118 / (width - 118)], nice=False)
    x = alt.X("probability:Q", scale=scale, axis=x_axis)

    def chart_of(frame: pl.DataFrame) -> alt.Chart:
        return alt.Chart(frame, width=width, height=alt.Step(38))

    def strokes(frame: pl.DataFrame, above: bool) -> alt.Chart:
        mark = {"orient": "vertical", "size": 10, "thickness": 1, "opacity": 1, "yOffset": -6 if above else 6}
        colour = look.colour if above else theme.ALERT
        return (
            chart_of(frame)
            .mark_tick(color=colour, **mark)
            .encode(
                x=x,
                y=y,
                tooltip=[alt.Tooltip("name:N"), alt.Tooltip("probability:Q", format=".4g"), alt.Tooltip("rank:Q")],
            )
        )

    slim = swaps.select("template", "name", "probability", "rank").with_columns(
        name=pl.col("name").map_elements(text.printable, pl.String)
    )
    ends = means.select("template", left=pl.lit(0.0), right=pl.lit(1.0))
    line = chart_of(ends).mark_rule(color=theme.GRID).encode(x=alt.X("left:Q", scale=scale), x2="right:Q", y=y)
    interval = chart_of(means).mark_rule(strokeWidth=3, color=theme.INK).encode(x=alt.X("low:Q"), x2="high:Q", y=y)
    mean = (
        chart_of(means)
        .mark_point(size=48, filled=True, fill=theme.PAPER, stroke=theme.INK, strokeWidth=2, opacity=1)
        .encode(x=alt.X("mean:Q"), y=y, tooltip=[alt.Tooltip(f"{c}:Q", format=".4g") for c in ("mean", "low", "high")])
    )
    counts = chart_of(firsts).mark_text(align="left").encode(x=alt.X("at:Q"), y=y, text="label:N")
    layers = [strokes(slim.filter(pl.col("rank") == 0), True), strokes(slim.filter(pl.col("rank") > 0), False)]
    return alt.layer(line, *layers, interval, mean, counts).properties(title=theme.heading(look.label, where))
