"""The most likely next tokens of each prompt."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import ordered

TABLES = ("next_token",)
CAPTION = """
The most likely tokens after each prompt, with their probabilities. The target is filled; if it is not among the first
ones it stands below them with its rank, 0 being the most likely. A middle dot is a space, ↵ a line break; bytes that
are no whole character are shown as <0xNN>.

It does not show whether an answer is wrong: these are probabilities of single tokens, a word may be cut into several,
and the same answer in other words counts as another token.
"""
MOST_TOKENS = 6
"""Tokens drawn for each prompt, beside the target; the table may hold more."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    tokens = tables["next_token"].filter((pl.col("rank") < MOST_TOKENS) | pl.col("is_target"))
    title = "What comes next?"
    models = theme.drawn(tokens, settings)
    if not models:
        return theme.finish(theme.nothing("No prompt is configured."), title, CAPTION, settings)
    prompts = ordered(tokens, "prompt")
    # Models side by side, prompts below one another; with one model, prompts fill the rows.
    side_by_side = min(len(models), 4) if len(models) > 1 else theme.columns(len(prompts))
    of = looks(settings)
    pairs = [(prompt, model) for prompt in prompts for model in models]
    panels = [
        panel(
            tokens.filter((pl.col("prompt") == prompt) & (pl.col("model") == model)),
            of[model],
            theme.heading(prompt, text.shorten(of[model].label, 30)) if len(models) > 1 else theme.heading(prompt),
            side_by_side,
            lowest=index + side_by_side >= len(pairs),
        )
        for index, (prompt, model) in enumerate(pairs)
    ]
    told = extremes(
        tokens.filter("is_target"),
        "probability",
        "Probability of the target",
        settings,
        {"prompt": "", "token": ""},
        text.probability,
    )
    return theme.finish(theme.grid(panels, side_by_side), title, CAPTION, settings, told)


def panel(
    tokens: pl.DataFrame, look: Look, heading: alt.TitleParams, side_by_side: int, lowest: bool
) -> alt.LayerChart:
    shown = tokens.sort("rank").with_columns(
        place=pl.int_range(pl.len()),
        shown=pl.struct("token", "rank").map_elements(label, pl.String),
        value=pl.col("probability").map_elements(text.probability, pl.String),
    )
    width = theme.panel_width(side_by_side, room=112)
    scale = alt.Scale(domain=[0, 1 + 54 / max(width - 54, 54)], nice=False)
    values = [0, 0.5, 1] if side_by_side < 4 else [0, 1]
    axis = alt.Axis(title="probability" if lowest else None, titleAnchor="start", values=values, domain=False)
    y = alt.Y("place:O", axis=None)
    columns = ["place", "shown", "value", "probability", "is_target", "rank", "token_id", "logit"]
    base = alt.Chart(shown.select(columns), width=width, height=alt.Step(19))
    bars = base.mark_bar(height=12, stroke=look.colour, strokeWidth=1).encode(
        x=alt.X("probability:Q", scale=scale, axis=axis),
        y=y,
        fill=alt.condition("datum.is_target", alt.value(look.colour), alt.value(theme.PAPER)),
        tooltip=[
            alt.Tooltip("shown:N", title="token"),
            alt.Tooltip("token_id:Q", title="id"),
            alt.Tooltip("probability:Q", format=".4g"),
            alt.Tooltip("rank:Q"),
            alt.Tooltip("logit:Q", format=".4g"),
        ],
    )
    names = base.mark_text(align="right", dx=-7, limit=110).encode(x=alt.value(0), y=y, text="shown:N")
    numbers = base.mark_text(align="left", dx=5, color=theme.MUTED).encode(
        x=alt.X("probability:Q", scale=scale), y=y, text="value:N"
    )
    return (bars + names + numbers).properties(title=heading)


def label(row: dict[str, Any]) -> str:
    """The token; with its rank if it stands there only because it is the target."""
    token = text.shorten(text.visible(row["token"]), 13)
    return token if row["rank"] < MOST_TOKENS else f"{token} #{text.whole(row['rank'])}"
