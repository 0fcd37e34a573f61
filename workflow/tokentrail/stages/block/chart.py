"""One layer of each kind, step by step: shapes and lengths."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import MIXERS, first_prompt

TABLES = ("block",)
CAPTION = """
Every tensor on the way through the first layer of each kind, in the order in which it is made, with its shape and its
length at the last position on a logarithmic axis. Open marks are tensors inside a sub-layer; filled ones are the
stream and what is added to it. Each model is drawn on the first prompt that was taken apart.

It does not show other layers, whose lengths can be of quite another size. Nor can lengths of tensors of different
shapes be compared: a vector of a thousand numbers is longer than one of ten whose numbers are as large.
"""
STREAM = ("resid_pre", "mixer_out", "resid_mid", "ffn_out", "resid_post")
NAMES, SHAPES = 170, 84
"""Pixels for the names of the steps, and for the shapes at the other side."""
NARROWEST = 130


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = first_prompt(tables["block"])
    title = "One layer, step by step"
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing("No layer was taken apart."), title, CAPTION, settings)
    of = looks(settings)
    drawn = [
        (rows.filter((pl.col("model") == model) & (pl.col("mixer") == mixer)), of[model], mixer)
        for model in models
        for mixer in MIXERS
    ]
    drawn = [(own, look, mixer) for own, look, mixer in drawn if own.height]
    side_by_side = min(len(drawn), 2)
    panels = [panel(own, look, mixer, side_by_side) for own, look, mixer in drawn]
    told = extremes(rows, "l2_norm", "Length of a vector within the layer", settings, {"layer": "layer", "step": ""})
    return theme.finish(theme.grid(panels, side_by_side), title, CAPTION, settings, told)


def panel(rows: pl.DataFrame, look: Look, mixer: str, side_by_side: int) -> alt.LayerChart:
    shown = rows.sort("order").select(
        "order",
        "step",
        stream=pl.col("site").is_in(STREAM),
        shape=pl.col("shape").str.replace_all("x", " × ", literal=True),
        length=pl.col("l2_norm").clip(1e-6).round_sig_figs(4),
    )
    width = max(theme.panel_width(side_by_side, room=50) - NAMES - SHAPES, NARROWEST)
    size = {"width": width, "height": 17 * shown.height}
    low, high = shown["length"].min() / 1.5, shown["length"].max() * 1.5
    y = alt.Y("order:O", axis=None)
    x = alt.X(
        "length:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(title="length (log)", values=theme.decades(low, high), format="~g"),
    )
    base = alt.Chart(shown, **size).encode(y=y)
    tooltip = [alt.Tooltip("step:N"), alt.Tooltip("shape:N"), alt.Tooltip("length:Q", format=".4g")]
    marks = base.mark_point(size=46, opacity=1, color=look.colour, strokeWidth=1.4).encode(
        x=x, fill=alt.condition("datum.stream", alt.value(look.colour), alt.value(theme.PAPER)), tooltip=tooltip
    )
    names = base.mark_text(align="right", dx=-8, fontSize=11).encode(x=alt.value(0), text="step:N")
    shapes = base.mark_text(align="left", dx=8, fontSize=11, color=theme.MUTED).encode(
        x=alt.value(width), text="shape:N"
    )
    where = f"layer {rows['layer'][0]}, {MIXERS[mixer]}, prompt {text.printable(rows['prompt'][0])}"
    heading = alt.TitleParams(text.shorten(look.label, 44), subtitle=where, dx=-NAMES)
    return alt.layer(marks, names, shapes).properties(title=heading)
