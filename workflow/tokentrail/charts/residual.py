"""Growth of the stream, and the size of what each sub-layer adds to it, at the last position."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
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
    last = last.filter(pl.col("model").is_in(models)).with_columns(layers=pl.col("layer").max().over("model") + 1)
    one_depth = last["layers"].n_unique() == 1
    at = pl.col("layer") if one_depth else (pl.col("layer") + 1) / pl.col("layers")
    last = last.with_columns(at=at)
    x_title = "layer" if one_depth else "share of the layers passed"
    panels = [
        panel(last.filter(pl.col("site") == site), heading, settings, x_title, last, leftmost=index == 0)
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
    x_title: str,
    everything: pl.DataFrame,
    leftmost: bool,
) -> alt.Chart:
    prompts = everything["prompt"].n_unique()
    low, high = everything["l2_norm"].min() / 1.1, everything["l2_norm"].max() * 1.4
    y_axis = alt.Axis(
        title="Euclidean length (activation units, log)" if leftmost else None,
        labels=leftmost,
        values=theme.decades(low, high),
        labelOverlap=False,
    )
    integers = {"tickMinStep": 1, "format": "d"} if x_title == "layer" else {}
    last_x = everything["layers"].max() - 1 if x_title == "layer" else 1
    return (
        alt.Chart(
            frame.select("model", "prompt", "layer", "at", "l2_norm"),
            width=theme.panel_width(3, room=14),
            height=240,
            title=theme.heading(heading),
        )
        .mark_line(strokeWidth=1.6, opacity=0.9 if prompts == 1 else max(0.4, 0.9 - 0.08 * prompts))
        .encode(
            x=alt.X(
                "at:Q",
                scale=alt.Scale(domain=[0, last_x], nice=False),
                axis=alt.Axis(title=x_title, tickCount=5, **integers),
            ),
            y=alt.Y(
                "l2_norm:Q",
                scale=alt.Scale(type="log", domain=[low, high], nice=False),
                axis=y_axis,
            ),
            detail="prompt:N",
            color=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
            strokeDash=alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None),
            tooltip=["model:N", "prompt:N", "layer:Q", alt.Tooltip("l2_norm:Q", format=".3g", title="length")],
        )
    )
