"""Growth of the stream, and the size of what each sub-layer adds to it, at the last position."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.by_layer import panels, with_depth
from tokentrail.charts.result import extremes
from tokentrail.charts.select import last_position

TABLES = ("residual",)
CAPTION = """
The length of the stream's vector at the last position after each layer, and the lengths of the two updates that the
layer adds: that of the mixer (attention or Mamba2) and that of the FFN, with the residual scale applied. Each line is
one prompt; the axis is logarithmic and the same in all three panels.

It does not show which update matters: one can be long and hardly turn the stream, another short and decide the
answer. Lengths of different models are on different scales, so the shapes of the curves can be compared, their
heights cannot.
"""
PANELS = {
    "resid_post": "The stream after the layer",
    "mixer_out": "The mixer adds",
    "ffn_out": "The FFN adds",
}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    last = last_position(tables["residual"]).filter(pl.col("site").is_in(list(PANELS)) & (pl.col("l2_norm") > 0))
    title = "How the stream grows"
    models = theme.drawn(last, settings)
    if not models:
        return theme.finish(theme.nothing("The sizes were measured on no prompt."), title, CAPTION, settings)
    last = with_depth(last.filter(pl.col("model").is_in(models)))
    low, high = last["l2_norm"].min() / 1.1, last["l2_norm"].max() * 1.4
    axis = {
        "title": "Euclidean length (activation units, log)",
        "values": theme.decades(low, high),
        "labelOverlap": False,
    }
    told = extremes(last, "l2_norm", "Euclidean length", settings, {"prompt": "", "site": "", "layer": "layer"})
    return theme.finish(
        panels(last, PANELS, "l2_norm", axis, (low, high), 240, settings), title, CAPTION, settings, told
    )
