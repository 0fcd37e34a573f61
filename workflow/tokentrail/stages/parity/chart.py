"""Parity: the largest logit difference of each prompt, against both sides' own rounding error."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import ordered

TABLES = ("parity",)
CAPTION = """
For each prompt, the largest difference in any logit at any position. The filled mark compares the forward pass of
this workflow with that of transformers, both in float32. The hollow marks are the error budget: how far each of the
two is from the same pass in float64, which is what rounding alone does. The dashed line is the tolerance of the gate;
a model with a filled mark to its right is stopped. Filled marks near the hollow ones mean that the two programs
compute the same function of these weights, on these prompts, as closely as float32 allows.

It does not show that the weights are the published ones, that either program is right where both make the same
mistake, or what happens on other inputs.
"""
QUANTITIES = {
    "max_abs_logit_diff": "this workflow and transformers, both in float32",
    "max_abs_error_ours": "this workflow in float32 and in float64",
    "max_abs_error_reference": "transformers in float32 and this workflow in float64",
}
SHAPES = ["circle", "triangle-up", "square"]
SMALLEST = 1e-9
"""Where a difference of exactly zero is drawn: a logarithmic axis has no zero."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    parity = tables["parity"]
    title = "Does this forward pass compute what the reference does?"
    models = theme.drawn(parity, settings)
    if not models:
        return theme.finish(theme.nothing("Parity was measured on no prompt."), title, CAPTION, settings)
    largest = (
        parity.filter(pl.col("model").is_in(models))
        .group_by("model", "prompt", maintain_order=True)
        .agg(pl.col(*QUANTITIES, "tolerance").max())
    )
    long = largest.unpivot(
        on=list(QUANTITIES), index=["model", "prompt", "tolerance"], variable_name="quantity", value_name="value"
    ).with_columns(
        quantity=pl.col("quantity").replace_strict(QUANTITIES),
        drawn=pl.max_horizontal("value", pl.lit(SMALLEST)),
    )
    edges = [long["drawn"].min() / 1.5, max(long["drawn"].max(), long["tolerance"].max()) * 2]
    side_by_side = theme.columns(len(models))
    panels = [
        panel(
            long.filter(pl.col("model") == model),
            looks(settings)[model],
            edges,
            side_by_side,
            leftmost=index % side_by_side == 0,
        )
        for index, model in enumerate(models)
    ]
    body = alt.vconcat(key(), theme.grid(panels, side_by_side))
    told = extremes(
        largest,
        "max_abs_logit_diff",
        "Largest difference in a logit between this workflow and transformers",
        settings,
        {"prompt": ""},
    )
    return theme.finish(body, title, CAPTION, settings, told)


def key() -> alt.LayerChart:
    """What the three marks compare."""
    names = list(QUANTITIES.values())
    frame = pl.DataFrame({"quantity": names, "row": range(len(names))})
    size = {"width": theme.WIDTH, "height": alt.Step(17)}
    y = alt.Y("row:O", axis=None)
    labels = alt.Chart(frame, **size).mark_text(align="left")
    return alt.layer(
        marks(frame, theme.INK, size, x=alt.value(6), y=y),
        labels.encode(x=alt.value(18), y=y, text="quantity:N"),
    ).properties(title=theme.heading("largest logit difference between"))


def marks(frame: pl.DataFrame, colour: str, size: dict[str, Any], **encodings: Any) -> alt.LayerChart:
    """A filled mark for what the gate judges, hollow ones for the error budget."""
    names = list(QUANTITIES.values())
    shape = alt.Shape("quantity:N", scale=alt.Scale(domain=names, range=SHAPES), legend=None)
    judged = pl.col("quantity") == names[0]
    return alt.layer(
        *(
            alt.Chart(frame.filter(chosen), **size)
            .mark_point(size=75, strokeWidth=1.6, opacity=1, filled=False, stroke=colour, fill=fill)
            .encode(shape=shape, **encodings)
            for chosen, fill in ((~judged, theme.PAPER), (judged, colour))
        )
    )


def panel(long: pl.DataFrame, look: Look, edges: list[float], side_by_side: int, leftmost: bool) -> alt.LayerChart:
    prompts = ordered(long, "prompt")
    scale = alt.Scale(type="log", domain=edges, nice=False)
    axis = alt.Axis(title="largest logit difference (log)", format="~e", values=theme.decades(*edges))
    y_axis = alt.Axis(title=None, labels=leftmost, labelColor=theme.INK, labelLimit=150)
    y = alt.Y("prompt:N", sort=prompts, axis=y_axis)
    size = {"width": theme.panel_width(side_by_side, room=36), "height": alt.Step(26)}
    tooltip = ["prompt:N", "quantity:N", alt.Tooltip("value:Q", format=".3g")]
    points = marks(
        long.drop("model"), look.colour, size, x=alt.X("drawn:Q", scale=scale, axis=axis), y=y, tooltip=tooltip
    )
    tolerance = long.select(pl.col("tolerance").max()).with_columns(
        label=pl.format("tolerance {}", pl.col("tolerance").map_elements(text.scientific, pl.String))
    )
    gate = alt.Chart(tolerance)
    at = alt.X("tolerance:Q", scale=scale)
    line = gate.mark_rule(color=theme.ALERT, strokeDash=[5, 3], strokeWidth=1.4).encode(x=at)
    label = gate.mark_text(color=theme.ALERT, align="right", baseline="bottom", dx=0, dy=-4).encode(
        x=at, y=alt.value(0), text="label:N"
    )
    return alt.layer(line, points, label).properties(title=theme.heading(look.label))
