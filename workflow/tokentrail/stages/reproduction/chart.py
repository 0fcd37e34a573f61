"""Published figures against this run: how many reproduce, by subject, and each number beside its own."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.select import STATUSES, ordered

TABLES = ("reproduction",)
CAPTION = """
Above, the published figures of each subject, by what became of them. Below, every judged figure that is a number above
zero, as published and as measured here, both on logarithmic axes: on the diagonal the two are the same. A cross differs
by more than the tolerance of its ledger; a mark off the diagonal without a cross is a bound that is kept.

It does not show figures that are text, lists or zero, which the table lists; and a figure that reproduces need not mean
what its write-up says that it means.
"""
COLOURS = {"reproduced": "#12336b", "differs": theme.ALERT, "shown": "#8a94a3", "not_run": theme.GRID}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    figures = tables["reproduction"]
    title = "Which published figures does this run reproduce?"
    if figures.is_empty():
        return theme.finish(theme.nothing("No ledger of published figures is configured."), title, CAPTION, settings)
    parts = [tally(figures)]
    numbers = figures.filter(
        pl.col("status").is_in(["reproduced", "differs"]), pl.col("published_value", "measured_value") > 0
    )
    models = theme.drawn(numbers, settings)
    if models:
        parts.append(theme.keyed(pairs(numbers.filter(pl.col("model").is_in(models)), settings), settings, models))
    body = alt.vconcat(*parts, spacing=26).resolve_scale(color="independent", shape="independent")
    counted = ", ".join(f"{(figures['status'] == status).sum():,} {words}" for status, words in STATUSES.items())
    told = f"Of {figures.height:,} figures: {counted}."
    return theme.finish(body, title, CAPTION, settings, told)


def tally(figures: pl.DataFrame) -> alt.LayerChart:
    """A bar for each subject, cut by status."""
    place = {status: number for number, status in enumerate(STATUSES)}
    counted = (
        figures.group_by("stage", "status", maintain_order=True)
        .len("figures")
        .with_columns(
            place=pl.col("status").replace_strict(place, return_dtype=pl.Int64),
            words=pl.col("status").replace_strict(STATUSES),
        )
        .sort("place", maintain_order=True)
        .with_columns(end=pl.col("figures").cum_sum().over("stage"))
        .with_columns(begin=pl.col("end") - pl.col("figures"), middle=pl.col("end") - pl.col("figures") / 2)
    )
    words = list(STATUSES.values())
    colour = alt.Color(
        "words:N",
        scale=alt.Scale(domain=words, range=[COLOURS[status] for status in STATUSES]),
        legend=alt.Legend(title=None, orient="top", symbolType="square", symbolStrokeColor=theme.MUTED),
    )
    widest = counted["end"].max()
    base = alt.Chart(counted, width=theme.WIDTH - 90, height=alt.Step(19)).encode(
        y=alt.Y("stage:N", sort=ordered(figures, "stage"), title=None, axis=alt.Axis(labelColor=theme.INK))
    )
    x = alt.X("begin:Q", title="published figures", scale=alt.Scale(domain=[0, widest], nice=False))
    bars = base.mark_bar(height=14, stroke=theme.MUTED, strokeWidth=0.5).encode(
        x=x, x2="end:Q", color=colour, tooltip=["stage:N", alt.Tooltip("words:N", title="status"), "figures:Q"]
    )
    wide_enough = alt.Chart(counted.filter(pl.col("figures") > 0.03 * widest)).encode(y=base.encoding.y)
    dark = alt.condition("datum.place < 2", alt.value(theme.PAPER), alt.value(theme.INK))
    numbers = wide_enough.mark_text(fontSize=11).encode(x=alt.X("middle:Q"), text="figures:Q", color=dark)
    return alt.layer(bars, numbers).properties(title=theme.heading("All figures, by subject"))


def pairs(numbers: pl.DataFrame, settings: dict[str, Any]) -> alt.LayerChart:
    """Published and measured, one mark a figure."""
    values = pl.concat([numbers["published_value"], numbers["measured_value"]])
    edges = [values.min() / 2, values.max() * 2]
    scale = alt.Scale(type="log", domain=edges, nice=False)
    axis = {"format": "~e", "values": theme.decades(*edges)[:: max(1, len(theme.decades(*edges)) // 8)]}
    x = alt.X("published_value:Q", scale=scale, axis=alt.Axis(title="published (log)", **axis))
    y = alt.Y("measured_value:Q", scale=scale, axis=alt.Axis(title="measured here (log)", **axis))
    size = {"width": 420, "height": 420}
    shown = numbers.select(
        "model", "input", "quantity", "published", "measured", "status", "published_value", "measured_value"
    )
    tooltip = ["quantity:N", "input:N", "published:N", "measured:N", "status:N"]
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    diagonal = alt.Chart(pl.DataFrame({"from": [edges[0]], "to": [edges[1]]}), **size).mark_rule(
        color=theme.FAINT, strokeDash=[4, 3]
    )
    line = diagonal.encode(x=alt.X("from:Q", scale=scale), y=alt.Y("from:Q", scale=scale), x2="to:Q", y2="to:Q")
    layers = [
        line,
        alt.Chart(shown.filter(pl.col("status") == "reproduced"), **size)
        .mark_point(size=42, strokeWidth=1.2, opacity=1, filled=False)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip),
        alt.Chart(shown.filter(pl.col("status") == "differs"), **size)
        .mark_point(size=64, strokeWidth=2, opacity=1, shape="cross", filled=True, color=theme.ALERT)
        .encode(x=x, y=y, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(title=theme.heading("Judged numbers above zero"))
