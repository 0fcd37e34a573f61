"""Every head switched off alone, as a grid of layers by heads."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import maps, text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import MIXERS, first_prompt

TABLES = ("ablations",)
CAPTION = """
How the probability of the target changes when a single head adds nothing. Each square is one head, each row one
layer. Blue means that the target loses probability without the head; orange with a plus, that it gains. A blank square
is no change. Each grid has its own scale, given below it, which is symmetric about zero. A cross marks a head without
which the target is no longer first. Heads of attention and of Mamba2 layers have grids of their own. Each model is
drawn on the first prompt that was ablated.

It does not show heads that stand in for each other: if two heads do the same work, switching off one alone changes
little. Nor does it show what a head does, only that the answer of this prompt leans on it.
"""
SMALLEST_LIMIT = 0.01
"""A grid in which no head changes more than this is drawn on this scale, so that noise does not look like an effect."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = first_prompt(tables["ablations"])
    heads = rows.filter((pl.col("component") == "head") & (pl.col("operation") == "zero"))
    title = "Which heads does the answer lean on?"
    models = theme.drawn(heads, settings)
    if not models:
        return theme.finish(theme.nothing("No head was switched off."), title, CAPTION, settings)
    clean = rows.filter(pl.col("component") == "clean").select("model", clean="target_probability")
    heads = (
        heads.join(clean, on="model", how="left", maintain_order="left")
        .with_columns(pl.col("layers", "heads").cast(pl.Int64))
        .with_columns(change=pl.col("target_probability") - pl.col("clean"))
    )
    of = looks(settings)
    grids = [
        grid(heads.filter((pl.col("model") == model) & (pl.col("mixer") == mixer)), of[model], mixer, len(models))
        for model in models
        for mixer in MIXERS
        if heads.filter((pl.col("model") == model) & (pl.col("mixer") == mixer)).height
    ]
    body = alt.vconcat(*rows_of(grids), spacing=26).resolve_scale(color="independent")
    told = extremes(
        heads,
        "change",
        "Change of the probability of the target without a head",
        settings,
        {"mixer": "", "layers": "layer", "heads": "head"},
    )
    return theme.finish(body, title, CAPTION, settings, told)


def rows_of(grids: list[tuple[int, alt.LayerChart]]) -> list[alt.HConcatChart]:
    """Grids side by side as far as they fit."""
    rows: list[list[alt.LayerChart]] = []
    left = 0
    for width, drawn in grids:
        if rows and left + width <= theme.WIDTH:
            rows[-1].append(drawn)
            left += width + 70
        else:
            rows.append([drawn])
            left = width + 70
    return [alt.hconcat(*row, spacing=40).resolve_scale(color="independent") for row in rows]


def grid(rows: pl.DataFrame, look: Look, mixer: str, models: int) -> tuple[int, alt.LayerChart]:
    """Width and drawing of one model's heads of one kind."""
    heads, layers = rows["heads"].max() + 1, rows["layers"].n_unique()
    step_x = max(8, min(26, 640 // heads))
    step_y = 13 if layers > 6 else 18
    width, height = heads * step_x, layers * step_y
    limit = max(rows["change"].abs().max(), SMALLEST_LIMIT)
    shown = rows.select(
        layer="layers",
        head="heads",
        change=pl.col("change").round_sig_figs(4),
        probability=pl.col("target_probability").round_sig_figs(4),
        lost=pl.col("target_rank") > 0,
        top=pl.col("top1_token").map_elements(text.visible, pl.String),
    )
    x = alt.X(
        "head:O",
        axis=alt.Axis(
            title="head", labelAngle=0, grid=False, ticks=False, domain=False, labelOverlap=True, orient="top"
        ),
    )
    y = alt.Y("layer:O", axis=alt.Axis(title=f"{MIXERS[mixer]} layer", grid=False, labelOverlap=True, labelPadding=4))
    length = max(120, min(width, 220))
    fill = alt.Color(
        "change:Q",
        scale=maps.diverging(limit),
        legend=maps.bar("change of the probability", [-limit, 0, limit], length, ".2~g"),
    )
    base = maps.squares(
        shown,
        x,
        y,
        fill,
        [
            alt.Tooltip("layer:O"),
            alt.Tooltip("head:O"),
            alt.Tooltip("change:Q", format="+.3g"),
            alt.Tooltip("probability:Q", format=".4g"),
            alt.Tooltip("top:N", title="most likely"),
        ],
    )
    signs = shown.filter((pl.col("change") > 0.15 * limit) & ~pl.col("lost"))
    plus = (
        alt.Chart(signs.select("layer", "head"))
        .mark_text(fontSize=11, color=theme.INK)
        .encode(x=x, y=y, text=alt.value("+"))
    )
    lost = (
        alt.Chart(shown.filter("lost").select("layer", "head"))
        .mark_text(fontSize=12, fontWeight="bold", color=theme.PAPER, stroke=theme.ALERT, strokeWidth=0.4)
        .encode(x=x, y=y, text=alt.value("×"))
    )
    where = f"{MIXERS[mixer]} heads, prompt {text.printable(rows['prompt'][0])}"
    drawn = alt.layer(base, plus, lost).properties(
        width=width,
        height=height,
        title=theme.heading(text.shorten(look.label, 40), where) if models > 1 else theme.heading(where),
    )
    return width, drawn
