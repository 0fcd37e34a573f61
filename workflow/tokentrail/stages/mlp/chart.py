"""Inside the FFN, layer by layer."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.by_layer import layer_axis, with_depth
from tokentrail.charts.result import extremes
from tokentrail.charts.select import last_position

TABLES = ("mlp",)
CAPTION = """
What the second matrix of each FFN reads at the last position: the share of its channels that are nearly nothing (less
than 0.01 from zero), the share below zero, and the largest and the smallest value, on an axis that is logarithmic away
from zero. Each line is one prompt. A GELU lets little below zero through; a gated FFN has no such floor.

It does not show which channels matter: a large one may meet a column of zeros in the matrix that follows, and many
small ones may add up. Models differ in width and in scale, so the shapes of the curves can be compared, the values of
the extremes cannot.
"""
SHARES = {"near_zero_fraction": "Nearly nothing", "negative_fraction": "Below zero"}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    last = last_position(tables["mlp"])
    title = "Inside the FFN"
    models = theme.drawn(last, settings)
    if not models:
        return theme.finish(theme.nothing("No FFN was looked into."), title, CAPTION, settings)
    last = with_depth(last.filter(pl.col("model").is_in(models)))
    panels = [
        # Not up to 1, where the label of the axis would push the heading higher than the next panel's.
        curve(last, pl.col(column), alt.Scale(domain=[0, 1.05], nice=False), shown_share(place), settings).properties(
            title=theme.heading(heading)
        )
        for place, (column, heading) in enumerate(SHARES.items())
    ]
    reach = 1.3 * max(last["max"].abs().max(), last["min"].abs().max(), 1.0)
    values = [tick for tick in (-100, -10, -1, 0, 1, 10, 100) if abs(tick) <= reach]
    scale = alt.Scale(type="symlog", constant=0.3, domain=[-reach, reach], nice=False)
    axis = alt.Axis(title="activation (log away from 0)", values=values, format="d", labelOverlap=False)
    largest = alt.layer(*(curve(last, pl.col(column), scale, axis, settings) for column in ("max", "min")))
    body = alt.hconcat(
        *panels, largest.properties(title=theme.heading("Largest and smallest")), spacing=60, bounds="flush"
    )
    told = extremes(
        last,
        "near_zero_fraction",
        "Share of channels that are nearly nothing",
        settings,
        {"prompt": "", "layer": "layer"},
        text.percent,
    )
    return theme.finish(theme.keyed(body, settings, models), title, CAPTION, settings, told)


def shown_share(place: int) -> alt.Axis:
    return alt.Axis(title="share of the channels" if place == 0 else None, values=[0, 0.5, 1], format="%")


def curve(frame: pl.DataFrame, value: pl.Expr, scale: alt.Scale, axis: alt.Axis, settings: dict) -> alt.Chart:
    """One line for each prompt of each model, by layer."""
    prompts = frame["prompt"].n_unique()
    shown = frame.select("model", "prompt", "layer", "at", value=value.round_sig_figs(4))
    return (
        alt.Chart(shown, width=theme.panel_width(3, room=60), height=220)
        .mark_line(strokeWidth=theme.line_width(prompts))
        .encode(
            x=layer_axis(frame),
            y=alt.Y("value:Q", scale=scale, axis=axis),
            detail="prompt:N",
            color=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
            strokeDash=alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None),
            tooltip=["model:N", "prompt:N", "layer:Q", alt.Tooltip("value:Q", format=".3g")],
        )
    )
