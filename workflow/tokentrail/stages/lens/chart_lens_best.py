"""The best rank that the target has on the way, beside its rank at the end."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.result import extremes
from tokentrail.charts.select import best_and_last, full_depth, ordered

TABLES = ("lens",)
CAPTION = """
For each prompt, the rank of the target at the end (filled mark) and the best rank that the lens finds for it after any
layer before the last (open mark), on a logarithmic axis with rank 0, the most likely token, at the left. Where the open
mark lies to the left of the filled one, the target stood higher on the way than at the end, and later layers put other
tokens before it. A target that ends at rank 0 cannot have stood higher; its marks coincide where it led before the last
layer too.

It does not show that the model gave an answer up: the lens reads middle layers with an output table that was made for
the last one, and a token can stand high there for reasons that have nothing to do with the question.
"""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    depth = full_depth(tables["lens"])
    title = "Did the target stand higher on the way?"
    models = theme.drawn(depth, settings)
    if not models:
        return theme.finish(theme.nothing("The lens was run on no prompt."), title, CAPTION, settings)
    shown = best_and_last(depth).filter(pl.col("model").is_in(models))
    shown = shown.with_columns(pl.col("prompt").map_elements(text.printable, pl.String))
    longest = max(shown.select(pl.max_horizontal("best", "last").max()).item(), 9)
    ticks = [tick for tick in (0, 1, 10, 100, 1000, 10_000, 100_000) if tick <= longest]
    prompts = [text.printable(prompt) for prompt in ordered(depth, "prompt")]
    x = alt.X(
        "last:Q",
        scale=alt.Scale(type="symlog", constant=1, domain=[0, longest], nice=False),
        axis=alt.Axis(title="rank of the target (log, 0 is first)", values=ticks, format=",d", labelOverlap=False),
    )
    size = {"width": theme.WIDTH - 150, "height": alt.Step(13 * len(models) + 9, **{"for": "position"})}
    y = alt.Y(
        "prompt:N", sort=prompts, axis=alt.Axis(title=None, labelColor=theme.INK, labelLimit=140, labelPadding=12)
    )
    place = alt.YOffset("model:N", sort=models)
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    tooltip = ["model:N", "prompt:N", "best:Q", alt.Tooltip("after:Q", title="after layer"), "last:Q"]
    base = alt.Chart(shown, **size).encode(y=y, yOffset=place, color=colour)
    line = base.mark_rule(strokeWidth=1.2).encode(x=x, x2="best:Q")
    end = base.mark_point(size=64, filled=True, opacity=1).encode(x=x, shape=shape, tooltip=tooltip)
    best = base.mark_point(size=64, fill=theme.PAPER, opacity=1, strokeWidth=1.6)
    best = best.encode(x=alt.X("best:Q"), shape=shape, tooltip=tooltip)
    body = alt.layer(line, end, best)
    told = extremes(
        shown,
        "best",
        "Best rank of the target before the last layer",
        settings,
        {"prompt": "", "after": "after layer"},
        text.whole,
    )
    return theme.finish(theme.keyed(body, settings, models), title, CAPTION, settings, told)
