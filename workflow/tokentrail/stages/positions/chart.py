"""What distance does: rotated queries and keys, and rows of a position table."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.result import extremes

TABLES = ("positions",)
CAPTION = """
At the left, how alike two positions are made, by the distance between them. With rotation, it is the mean score of a
random direction with itself after each side is turned by its position: what is left of a perfect match. With a table
of positions, it is the mean cosine of two rows at that distance. Distances are taken at four steps to a doubling. At
the right, where there is such a table, the length of each of its rows by position.

It does not show how much a head uses position: a head can put its queries and keys into channels that hardly turn, or
learn to need a match at a certain distance. A model with neither rotation nor a table has no line here; order reaches
it through the causal mask and its recurrent layers alone.
"""
ALIKE = {"expected_rotation": "rotation", "position_cosine": "position table"}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    alike = tables["positions"].filter(pl.col("probe").is_in(list(ALIKE)))
    norms = tables["positions"].filter(pl.col("probe") == "position_norm")
    title = "How position enters"
    models = theme.drawn(alike, settings)
    if not models:
        return theme.finish(theme.nothing("No model here encodes positions."), title, CAPTION, settings)
    panels = 2 if norms.height else 1
    low = min(0.0, alike["score"].min())
    left = lines(
        alike, "score", "likeness (1: same position)", [low, 1.05], panels, "distance, positions (log)", settings
    )
    body = left.properties(title=theme.heading("How alike, by distance"))
    if norms.height:
        top = norms["score"].max() * 1.05
        right = lines(norms, "score", "length of the row", [0, top], panels, "position (log)", settings)
        body = alt.hconcat(body, right.properties(title=theme.heading("Rows of the position table")), spacing=40)
    body = theme.without(theme.keyed(body, settings, models), "no position encoding", settings, models)
    told = extremes(alike, "score", "Likeness of two positions", settings, {"probe": "", "offset": "distance"})
    return theme.finish(body, title, CAPTION, settings, told)


def lines(
    frame: pl.DataFrame, value: str, y_title: str, domain: list[float], panels: int, x_title: str, settings: dict
) -> alt.Chart:
    """Lines over distance or position on a logarithmic axis that has a place for 0: log(1 + x)."""
    longest = int(frame["offset"].max())
    ticks = [tick for tick in (0, 1, 10, 100, 1000, 10_000, 100_000) if tick <= longest]
    return (
        alt.Chart(
            frame.select("model", "offset", pl.col(value).round_sig_figs(5)),
            width=theme.panel_width(panels, room=86),
            height=230,
        )
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X(
                "offset:Q",
                scale=alt.Scale(type="symlog", constant=1, domain=[0, max(longest, 1)], nice=False),
                axis=alt.Axis(title=x_title, values=ticks, format=",d"),
            ),
            y=alt.Y(f"{value}:Q", scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(title=y_title)),
            color=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
            strokeDash=alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None),
            tooltip=["model:N", alt.Tooltip("offset:Q"), alt.Tooltip(f"{value}:Q", format=".3g")],
        )
    )
