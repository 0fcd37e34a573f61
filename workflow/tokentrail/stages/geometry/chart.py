"""Nearest neighbours of some words in the token table, beside random tokens."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes

TABLES = ("geometry",)
CAPTION = """
The rows of the token table that point most nearly the same way as the row of a word: the further to the right, the
larger the cosine. The grey band is where random tokens lie, their mean and one standard deviation to each side; the
sample is the same for every word and drawn with a fixed seed.

It does not show what a word means to the model: these are the rows as they are stored, before any layer has read the
sentence that they stand in. A cosine has no zero point of its own either, so a mark says something only against its
band.
"""
STEP = 17


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    near = tables["geometry"].filter((pl.col("probe") == "neighbours") & (pl.col("pieces") == 1))
    title = "Which rows of the token table are close to each other?"
    models = theme.drawn(near, settings)
    if not models:
        return theme.finish(theme.nothing("No word was looked up."), title, CAPTION, settings)
    random = tables["geometry"].filter(pl.col("probe") == "random")
    side_by_side = min(theme.columns(len(models)), 2)
    of = looks(settings)
    low = min(0.0, near["cosine"].min(), (random["cosine"] - random["deviation"]).min())
    panels = [
        panel(near.filter(pl.col("model") == name), random.filter(pl.col("model") == name), of[name], side_by_side, low)
        for name in models
    ]
    told = extremes(near, "cosine", "Cosine of a word and a neighbour", settings, {"token": "", "neighbour": "and"})
    return theme.finish(theme.grid(panels, side_by_side), title, CAPTION, settings, told)


def panel(near: pl.DataFrame, random: pl.DataFrame, look: Look, side_by_side: int, low: float) -> alt.LayerChart:
    width = theme.panel_width(side_by_side, room=60) - 190
    lines, at = [], 0.0
    for word in near["token"].unique(maintain_order=True):
        rows = near.filter(pl.col("token") == word).sort("rank").to_dicts()
        for row in rows:
            lines.append(
                {"word": word, "at": at, "cosine": row["cosine"], "neighbour": text.visible(row["neighbour"])}
                | {"shown": text.shorten(text.visible(row["neighbour"]), 14), "value": text.decimals(row["cosine"])}
            )
            at += 1
        at += 0.7
    marks = pl.DataFrame(lines)
    groups = marks.group_by("word", maintain_order=True).agg(top=pl.col("at").min() - 0.5, end=pl.col("at").max() + 0.5)
    bands = groups.join(random.select("cosine", "deviation", word="token"), on="word", maintain_order="left")
    bands = bands.select(
        "top", "end", low=pl.col("cosine") - pl.col("deviation"), high=pl.col("cosine") + pl.col("deviation")
    )
    words = groups.select(
        at=pl.col("top") + 0.5,
        shown=pl.col("word").map_elements(lambda word: text.shorten(text.visible(word), 13), pl.String),
    )
    size = {"width": width, "height": round(STEP * (at - 0.7))}
    y_scale = alt.Scale(domain=[-0.5, at - 1.2], reverse=True, nice=False)
    y = alt.Y("at:Q", scale=y_scale, axis=None)
    scale = alt.Scale(domain=[low, 1], nice=False)
    axis = alt.Axis(title="cosine", values=[0, 0.5, 1])
    band = alt.Chart(bands, **size).mark_rect(color=theme.GRID)
    band = band.encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", y=alt.Y("top:Q", scale=y_scale, axis=None), y2="end:Q"
    )
    base = alt.Chart(marks.drop("word"), **size).encode(y=y)
    mark = base.mark_point(size=52, filled=True, opacity=1, color=look.colour, shape=look.shape).encode(
        x=alt.X("cosine:Q", scale=scale, axis=axis),
        tooltip=[alt.Tooltip("neighbour:N"), alt.Tooltip("cosine:Q", format=".3f")],
    )
    near_by = base.mark_text(align="right", dx=-8, color=theme.MUTED, fontSize=11).encode(
        x=alt.value(0), text="shown:N"
    )
    value = base.mark_text(align="left", dx=6, color=theme.MUTED, fontSize=11).encode(
        x=alt.value(width), text="value:N"
    )
    asked = alt.Chart(words, **size).mark_text(align="left", dx=-180, fontWeight="bold")
    asked = asked.encode(x=alt.value(0), y=y, text="shown:N")
    heading = alt.TitleParams(text.shorten(look.label, 44), dx=-180)
    return alt.layer(band, mark, near_by, value, asked).properties(title=heading)
