"""Where rounding enters: the difference of the two passes through the layers."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme

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
    layers = layers.filter(pl.col("model").is_in(models)).with_columns(
        share=pl.max_horizontal(pl.col("max_abs_diff") / pl.col("max_abs_value"), pl.lit(SMALLEST)),
        layers=pl.col("layer").max().over("model") + 1,
    )
    one_depth = layers["layers"].n_unique() == 1
    at = pl.col("layer") if one_depth else (pl.col("layer") + 1) / pl.col("layers")
    layers = layers.with_columns(at=at)
    panels = [
        panel(layers.filter(pl.col("site") == site), heading, settings, layers, one_depth, leftmost=index == 0)
        for index, (site, heading) in enumerate(PANELS.items())
    ]
    body = alt.hconcat(*panels, spacing=14)
    return theme.finish(
        alt.vconcat(theme.key(settings, models), body, spacing=8) if len(models) > 1 else body,
        title,
        CAPTION,
        settings,
    )


def panel(
    frame: pl.DataFrame,
    heading: str,
    settings: dict[str, Any],
    everything: pl.DataFrame,
    one_depth: bool,
    leftmost: bool,
) -> alt.LayerChart:
    prompts = everything["prompt"].n_unique()
    top = max(everything["share"].max(), FLOAT32_SPACING) * 2
    low = min(everything["share"].min(), FLOAT32_SPACING) / 2
    y_scale = alt.Scale(type="log", domain=[low, top], nice=False)
    y_axis = alt.Axis(
        title="difference / largest value (log)" if leftmost else None,
        labels=leftmost,
        format="~e",
        values=theme.decades(low, top),
    )
    x_axis = alt.Axis(
        title="layer" if one_depth else "share of the layers passed",
        tickCount=5,
        **({"tickMinStep": 1, "format": "d"} if one_depth else {}),
    )
    last_x = everything["layers"].max() - 1 if one_depth else 1
    lines = (
        alt.Chart(
            frame.select("model", "prompt", "layer", "at", "share"),
            width=theme.panel_width(3, room=14),
            height=200,
            title=theme.heading(heading),
        )
        .mark_line(strokeWidth=1.4, opacity=0.9 if prompts == 1 else max(0.4, 0.9 - 0.08 * prompts))
        .encode(
            x=alt.X("at:Q", scale=alt.Scale(domain=[0, last_x], nice=False), axis=x_axis),
            y=alt.Y("share:Q", scale=y_scale, axis=y_axis),
            detail="prompt:N",
            color=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
            strokeDash=alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None),
            tooltip=["model:N", "prompt:N", "layer:Q", alt.Tooltip("share:Q", format=".2g")],
        )
    )
    spacing = pl.DataFrame({"share": [FLOAT32_SPACING]})
    floor = alt.Chart(spacing).mark_rule(strokeDash=[1, 3], color=theme.INK).encode(y=alt.Y("share:Q", scale=y_scale))
    return floor + lines
