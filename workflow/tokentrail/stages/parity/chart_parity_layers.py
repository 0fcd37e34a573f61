"""Where rounding enters: the difference of the two passes through the layers."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.by_layer import panels, with_depth
from tokentrail.charts.result import extremes

TABLES = ("parity_layers",)
CAPTION = """
How far the two float32 passes are apart inside the model, as a share of the largest value at the same place: for what
the mixer adds, what the FFN adds, and the stream after the layer. Each line is one prompt. The dotted line is the
spacing of float32 numbers at 1, about 1.2e-7; no comparison in float32 can be expected to stay far below it. Curves
that wander a little above that line are rounding. A wrong cell would show as a step of many powers of ten at its
layer. A difference of exactly zero is drawn at 1e-9.

It does not show that the cells are equal on other inputs.
"""
PANELS = {
    "mixer_out": "The mixer adds",
    "ffn_out": "The FFN adds",
    "resid_post": "The stream after the layer",
}
FLOAT32_SPACING = 2.0**-23
SMALLEST = 1e-9
"""Where a difference of exactly zero is drawn: a logarithmic axis has no zero."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    layers = tables["parity_layers"].filter(pl.col("site").is_in(list(PANELS)) & (pl.col("max_abs_value") > 0))
    title = "Where do the two passes part?"
    models = theme.drawn(layers, settings)
    if not models:
        return theme.finish(theme.nothing("Parity was measured on no prompt."), title, CAPTION, settings)
    exact = pl.col("max_abs_diff") / pl.col("max_abs_value")
    share = pl.max_horizontal(exact, pl.lit(SMALLEST))
    layers = with_depth(layers.filter(pl.col("model").is_in(models)).with_columns(share=share))
    low = min(layers["share"].min(), FLOAT32_SPACING) / 2
    top = max(layers["share"].max(), FLOAT32_SPACING) * 2
    axis = {"title": "difference / largest value (log)", "format": "~e", "values": theme.decades(low, top)}
    body = panels(layers, PANELS, "share", axis, (low, top), 200, settings, floor=FLOAT32_SPACING)
    told = extremes(
        layers.with_columns(share=exact),
        "share",
        "Largest difference of a site as a share of its largest value",
        settings,
        {"prompt": "", "site": "", "layer": "layer"},
    )
    return theme.finish(body, title, CAPTION, settings, told)
