"""What decoding rules make of the same logits."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.result import extremes
from tokentrail.charts.select import ordered

TABLES = ("distribution",)
CAPTION = """
How wide the distribution of the next token is under each decoding rule, in effective choices: the number of equally
likely tokens that would have the same entropy. The model is run once; each rule works on the logits that are there.
Small marks are prompts, the large mark with the number is their geometric mean. A temperature below 1 sharpens, one
above 1 flattens; top-k and top-p cut off what is unlikely and renormalise.

It does not show better answers: none of these rules can change which token is first, so greedy decoding says the same
under all of them. What they change is how often something else is drawn.
"""
NONE = "as computed"


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = tables["distribution"].filter((pl.col("experiment") == "") & (pl.col("step") == 0))
    title = "What may decoding change?"
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing("No distribution was measured."), title, CAPTION, settings)
    shown = rows.select(
        "model",
        "prompt",
        rule=pl.col("decoding").replace("none", NONE),
        choices=pl.col("effective_choices").round_sig_figs(4),
        left="tokens_left",
        top=pl.col("top1_probability").round_sig_figs(3),
    )
    means = shown.group_by("model", "rule", maintain_order=True).agg(pl.col("choices").log().mean().exp())
    means = means.with_columns(value=pl.col("choices").map_elements(text.size, pl.String))
    rules = ordered(shown, "rule")
    height = 16 * len(models) + 14
    size = {"width": theme.WIDTH - 220, "height": alt.Step(height, **{"for": "position"})}
    low, high = 1.0, shown["choices"].max() * 1.4
    x = alt.X(
        "choices:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(title="effective choices, tokens (log)", values=theme.decades(low, high), format=",d"),
    )
    axis = alt.Axis(title=None, grid=True, labelColor=theme.INK, labelPadding=12)
    y = alt.Y("rule:N", sort=rules, axis=axis)
    place = alt.YOffset("model:N", sort=models)
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    tooltip = ["model:N", "prompt:N", "choices:Q", alt.Tooltip("left:Q", title="tokens left"), "top:Q"]
    small = alt.Chart(shown, **size).mark_point(size=24, opacity=1, strokeWidth=1.1)
    small = small.encode(x=x, y=y, yOffset=place, color=colour, shape=shape, tooltip=tooltip)
    big = alt.Chart(means, **size).mark_point(size=80, filled=True, opacity=1, stroke=theme.PAPER, strokeWidth=1)
    big = big.encode(x=x, y=y, yOffset=place, color=colour, shape=shape)
    values = alt.Chart(means, **size).mark_text(align="left", dx=10, color=theme.MUTED)
    values = values.encode(x=alt.value(size["width"]), y=y, yOffset=place, text="value:N")
    body = alt.layer(small, big, values)
    told = extremes(shown, "choices", "Effective choices", settings, {"prompt": "", "rule": ""})
    return theme.finish(theme.keyed(body, settings, models), title, CAPTION, settings, told)
