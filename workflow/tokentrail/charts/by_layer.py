"""Lines by layer on a logarithmic axis: a panel for each site, a line for each prompt of each model."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme


def with_depth(frame: pl.DataFrame) -> pl.DataFrame:
    """With `layers`, the depth of the model, and `at`: the layer, or the share passed when models differ in depth."""
    frame = frame.with_columns(layers=pl.col("layer").max().over("model") + 1)
    one_depth = frame["layers"].n_unique() == 1
    return frame.with_columns(at=pl.col("layer") if one_depth else (pl.col("layer") + 1) / pl.col("layers"))


def panels(
    frame: pl.DataFrame,
    sites: dict[str, str],
    value: str,
    axis: dict[str, Any],
    domain: tuple[float, float],
    height: int,
    settings: dict[str, Any],
    floor: float | None = None,
) -> alt.TopLevelMixin:
    """A panel for each of `sites`, with its heading; `axis` is that of `value`, `floor` a dotted line in it.

    The frame has the columns model, prompt, site, layer, `value`, and those of `with_depth`.
    """
    models = theme.drawn(frame, settings)
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    drawn = []
    for index, (site, heading) in enumerate(sites.items()):
        rows = frame.filter(pl.col("site") == site).select("model", "prompt", "layer", "at", value)
        shown = axis if index == 0 else axis | {"title": None, "labels": False}
        y = alt.Y(f"{value}:Q", scale=scale, axis=alt.Axis(**shown))
        chart = lines(rows, frame, heading, value, y, height, settings)
        if floor is not None:
            rule = alt.Chart(pl.DataFrame({value: [floor]})).mark_rule(strokeDash=[1, 3], color=theme.INK)
            chart = rule.encode(y=alt.Y(f"{value}:Q", scale=scale)) + chart
        drawn.append(chart)
    body = alt.hconcat(*drawn, spacing=14)
    return alt.vconcat(theme.key(settings, models), body, spacing=8) if len(models) > 1 else body


def lines(
    rows: pl.DataFrame,
    everything: pl.DataFrame,
    heading: str,
    value: str,
    y: alt.Y,
    height: int,
    settings: dict[str, Any],
) -> alt.Chart:
    """One panel; `everything` is the frame of all panels, which share their axes."""
    prompts = everything["prompt"].n_unique()
    return (
        alt.Chart(rows, width=theme.panel_width(3, room=14), height=height, title=theme.heading(heading))
        .mark_line(strokeWidth=theme.line_width(prompts))
        .encode(
            x=layer_axis(everything),
            y=y,
            detail="prompt:N",
            color=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
            strokeDash=alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None),
            tooltip=["model:N", "prompt:N", "layer:Q", alt.Tooltip(f"{value}:Q", format=".3g")],
        )
    )


def layer_axis(frame: pl.DataFrame) -> alt.X:
    """The x axis of a frame `with_depth`: the layer, or the share of the layers passed."""
    one_depth = frame["layers"].n_unique() == 1
    last = frame["layers"].max() - 1 if one_depth else 1
    axis = alt.Axis(
        title="layer" if one_depth else "share of the layers passed",
        tickCount=5,
        **({"tickMinStep": 1, "format": "d"} if one_depth else {}),
    )
    return alt.X("at:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=axis)
