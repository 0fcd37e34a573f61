"""The logit lens: the target's probability and rank after every layer."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.result import extremes
from tokentrail.charts.select import first_leading, full_depth, ordered

TABLES = ("lens",)
CAPTION = """
What the model would answer at the last position if it stopped after each layer: the stream is taken there, given the
final norm and the output table, and the target is looked up. Above, the target's probability; below, its rank on a
logarithmic scale, 0 being the most likely token. The large marks stand where the target leads for the first time;
layers are counted from 0. A thin dotted line is the same model with all its attention off, drawn where Mamba2 layers
are left to carry on alone.

It does not show which part of the model causes the answer, because the lens changes nothing; where values are put in
from another prompt, the answer can be found earlier or later than here. Nor does a low value in a middle layer show
that the information is absent there: those layers were not trained to be read by the output table.
"""
RANK_TICKS = [0, 10, 100, 1000, 10000, 100000]


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    lens = full_depth(tables["lens"])
    leading = first_leading(tables["lens"])
    title = "When does the target come to lead?"
    models = theme.drawn(lens, settings)
    if not models:
        return theme.finish(theme.nothing("The lens was run on no prompt."), title, CAPTION, settings)
    lens = lens.filter(pl.col("model").is_in(models))
    one_depth = lens["layers"].n_unique() == 1
    at = pl.col("layer") if one_depth else (pl.col("layer") + 1) / pl.col("layers")
    alone = full_depth(tables["lens"], "attention_off").with_columns(at=at)
    lens, leading = lens.with_columns(at=at), leading.with_columns(at=at)
    prompts = ordered(lens, "prompt")
    lowest = max(*lens["target_rank"], *alone["target_rank"], 9)
    side_by_side = theme.columns(len(prompts))
    cells = [
        cell(
            prompt,
            lens.filter(pl.col("prompt") == prompt),
            leading.filter(pl.col("prompt") == prompt),
            alone.filter(pl.col("prompt") == prompt),
            settings,
            models,
            "layer" if one_depth else "share of the layers passed",
            lowest,
            side_by_side,
            leftmost=index % side_by_side == 0,
        )
        for index, prompt in enumerate(prompts)
    ]
    body = theme.grid(cells, side_by_side)
    told = extremes(
        lens,
        "target_probability",
        "Probability of the target after a layer",
        settings,
        {"prompt": "", "layer": "layer"},
        text.probability,
    )
    return theme.finish(
        alt.vconcat(theme.key(settings, models), body) if len(models) > 1 else body, title, CAPTION, settings, told
    )


def cell(
    prompt: str,
    lens: pl.DataFrame,
    leading: pl.DataFrame,
    alone: pl.DataFrame,
    settings: dict[str, Any],
    models: list[str],
    x_title: str,
    lowest: int,
    side_by_side: int,
    leftmost: bool,
) -> alt.VConcatChart:
    """One prompt: who leads when, the probability, and the rank; `alone` is the lens with all attention off."""
    width = theme.panel_width(side_by_side, room=72)
    tall = 1.4 if side_by_side == 1 else 1
    layers = lens["layers"].max()
    by_layer = x_title == "layer"
    x_scale = alt.Scale(domain=[0, layers - 1] if by_layer else [0, 1], nice=False)

    def x(axis: alt.Axis) -> alt.X:
        return alt.X("at:Q", scale=x_scale, axis=axis)

    quiet = alt.Axis(title=None, labels=False, ticks=False, domain=False, tickCount=6)
    told = alt.Axis(title=x_title, tickCount=6, **({"tickMinStep": 1, "format": "d"} if by_layer else {}))
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    dash = alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None)
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("layer:Q"),
        alt.Tooltip("target_probability:Q", title="probability", format=".3g"),
        alt.Tooltip("target_rank:Q", title="rank"),
        alt.Tooltip("top:N", title="most likely"),
    ]
    columns = ["model", "layer", "at", "target_probability", "target_rank"]
    lines = lens.with_columns(top=pl.col("top1_token").map_elements(text.visible, pl.String)).select(*columns, "top")
    marks, dotted = leading.select(columns), alone.select(columns)

    def curve(y: alt.Y, axis: alt.Axis, height: int) -> alt.LayerChart:
        base = alt.Chart(lines, width=width, height=round(height * tall))
        line = base.mark_line(strokeWidth=1.8, clip=False).encode(x=x(axis), y=y, color=colour, strokeDash=dash)
        hover = base.mark_point(opacity=0, size=60).encode(x=x(axis), y=y, tooltip=tooltip)
        rule = alt.Chart(marks).mark_rule(strokeWidth=1).encode(x=x(axis), color=colour, strokeDash=dash)
        mark = (
            alt.Chart(marks)
            .mark_point(size=80, filled=True, opacity=1, stroke=theme.PAPER, strokeWidth=1)
            .encode(x=x(axis), y=y, color=colour, shape=shape)
        )
        thin = alt.Chart(dotted).mark_line(strokeWidth=1.2, strokeDash=[1, 3]).encode(x=x(axis), y=y, color=colour)
        return rule + thin + line + hover + mark

    probability = alt.Y(
        "target_probability:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="probability" if leftmost else None, values=[0, 0.5, 1]),
    )
    rank = alt.Y(
        "target_rank:Q",
        # symlog with constant 1 is log(1 + rank): logarithmic, and it has a place for rank 0.
        scale=alt.Scale(type="symlog", constant=1, domain=[lowest, 0], nice=False),
        axis=alt.Axis(
            title="rank (log)" if leftmost else None,
            values=[tick for tick in RANK_TICKS if tick <= lowest],
            format=",d",
            labelOverlap=False,
        ),
    )
    when = leads(leading, lens, settings, models, width, prompt)
    # Flush, so that a mark that sticks out of a panel does not push the next one down.
    return alt.vconcat(when, curve(probability, quiet, 80), curve(rank, told, 110), spacing=16, bounds="flush")


def leads(
    leading: pl.DataFrame,
    lens: pl.DataFrame,
    settings: dict[str, Any],
    models: list[str],
    width: int,
    prompt: str,
) -> alt.LayerChart:
    """The lines above a cell: each model's mark, and the layer after which the target first leads."""
    first = dict(leading.select("model", "layer").iter_rows())
    last = dict(lens.group_by("model").agg(pl.col("layer").max()).iter_rows())
    listed = [name for name in models if name in last]
    frame = pl.DataFrame(
        {
            "model": listed,
            "row": range(len(listed)),
            "label": [
                f"leads first after layer {first[name]} of 0–{last[name]}" if name in first else "never leads"
                for name in listed
            ],
        }
    )
    y = alt.Y("row:O", axis=None)
    base = alt.Chart(frame, width=width, height=alt.Step(16))
    symbol = base.mark_point(size=60, filled=True, opacity=1).encode(
        x=alt.value(5),
        y=y,
        color=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
        shape=alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None),
    )
    label = base.mark_text(align="left").encode(x=alt.value(16), y=y, text="label:N")
    return (symbol + label).properties(title=theme.heading(prompt))
