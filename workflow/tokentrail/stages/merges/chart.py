"""One word, from bytes to tokens: the symbols after every merge."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import replayed_word

TABLES = ("merges",)
CAPTION = """
How a tokenizer builds its tokens: the first row is the bytes of the word. In every row below, the pair of neighbours
whose merge has the lowest rank has been joined, wherever it stands; the symbol that came of it is shaded, and the rank
stands at the right. When no pair has a merge any more, the symbols are the tokens.

It does not show why a merge has its rank: the list was made from counts in a text that is not known here. Nor are
tokens parts of a word in any linguist's sense; a word that was frequent in that text is one token, and a rare one is
cut where the list happens to end.
"""
MOST_STEPS = 14
BOX = 26
"""Height of a row, in pixels."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    merges = tables["merges"]
    title = "From bytes to tokens"
    word = replayed_word(merges, MOST_STEPS)
    if word is None:
        return theme.finish(theme.nothing("No word was replayed."), title, CAPTION, settings)
    rows = merges.filter((pl.col("prompt") == word) & (pl.col("kind") == "word"))
    models = theme.drawn(rows, settings)
    side_by_side = min(theme.columns(len(models)), 2)
    of = looks(settings)
    panels = [panel(boxes(rows.filter(pl.col("model") == name)), of[name], word, side_by_side) for name in models]
    body = theme.without(theme.grid(panels, side_by_side), "no plain byte-level BPE", settings, models)
    told = extremes(
        rows.group_by("model", "prompt", maintain_order=True).agg(pl.col("step").max()),
        "step",
        "Merges that put the word together",
        settings,
        {"prompt": ""},
        text.whole,
    )
    return theme.finish(body, title, CAPTION, settings, told)


def boxes(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each symbol of each step: where it starts and ends in bytes, and whether the step made it."""
    found = []
    for row in rows.filter(pl.col("piece") == 0).sort("step").to_dicts():
        at = 0
        joined = f"{row['left']}{row['right']}" if row["rank"] is not None else None
        told = "" if row["step"] == 0 else "whole" if joined is None else f"rank {text.whole(row['rank'])}"
        for symbol in row["symbols"].split(" "):
            here = {"step": row["step"], "start": at, "end": at + len(symbol), "symbol": text.of_symbols(symbol)}
            found.append(here | {"made": symbol == joined, "told": told})
            at += len(symbol)
    return pl.DataFrame(found)


def panel(shown: pl.DataFrame, look: Look, word: str, side_by_side: int) -> alt.LayerChart:
    width = theme.panel_width(side_by_side, room=110) - 70
    size = {"width": width, "height": alt.Step(BOX)}
    last = shown["end"].max()
    x = alt.X("start:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=None)
    y = alt.Y("step:O", axis=alt.Axis(title="merges done", grid=False, domain=False))
    tooltip = [alt.Tooltip("step:O"), alt.Tooltip("symbol:N"), alt.Tooltip("told:N", title="merge")]
    base = alt.Chart(shown.with_columns(middle=(pl.col("start") + pl.col("end")) / 2), **size)
    fill = alt.condition("datum.made", alt.value("#cfe0f5"), alt.value(theme.PAPER))
    frames = base.mark_rect(stroke=theme.FAINT, strokeWidth=1, height=BOX - 6).encode(
        x=x, x2="end:Q", y=y, color=fill, tooltip=tooltip
    )
    size_of_text = 12 if width / last > 11 else 11
    symbols = base.mark_text(fontSize=size_of_text).encode(x=alt.X("middle:Q"), y=y, text="symbol:N")
    ranks = (
        alt.Chart(shown.unique("step", keep="first", maintain_order=True), **size)
        .mark_text(align="left", dx=8, color=theme.MUTED)
        .encode(x=alt.value(width), y=y, text="told:N")
    )
    heading = theme.heading(text.shorten(look.label, 44), text.shorten(f"the word {text.visible(word)}", 50))
    return alt.layer(frames, symbols, ranks).properties(title=heading)
