"""What each part adds, directly, to the logit of the target over that of its rival."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import MIXERS, attributed, layers_of, ordered

TABLES = ("attribution",)
CAPTION = """
What each part adds, by itself and through the last norm and the output table, to the logit of the target minus the
logit of its rival, the most likely other token. Bars above zero favour the target. Full bars are mixers, summed over
their heads; hollow bars are FFNs; the bar named embed is the token's own embedding. Shaded columns are attention
layers, where a model has Mamba2 layers too. All bars of a prompt add up to the difference of the two logits, which
stands in its heading. At the right, the single heads that add most, in either direction.

It does not show what a part does for the answer through later layers: a head that only prepares what another one reads
has a short bar, and switching off a part with a long bar may change little. The last norm is held at the scale that it
has in the whole run. A rival can be a token that the model hardly considers; then the bars say what sets the target
apart from that token alone, and models with different rivals cannot be compared.
"""
EMBED_AT = -2.6
"""Where the bar of the embedding stands, left of layer 0."""
MOST_HEADS = 8
MOST_PROMPTS = 2
"""Prompts drawn for each model; the table holds all of them."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = tables["attribution"]
    title = "Which parts speak for the target, against its rival?"
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing("Nothing was attributed."), title, CAPTION, settings)
    of = looks(settings)
    rows = attributed(rows)
    shown = rows.filter(pl.col("head").is_null())
    blocks = [
        block(rows.filter((pl.col("model") == model) & (pl.col("prompt") == prompt)), of[model], len(models))
        for model in models
        for prompt in ordered(rows.filter(pl.col("model") == model), "prompt")[:MOST_PROMPTS]
    ]
    told = extremes(
        shown,
        "difference",
        "What an embedding, a mixer or an FFN adds to the logit of the target minus that of its rival",
        settings,
        {"prompt": "", "site": "", "layer": "layer", "head": "head"},
    )
    return theme.finish(alt.vconcat(*blocks, spacing=24), title, CAPTION, settings, told)


def block(rows: pl.DataFrame, look: Look, models: int) -> alt.HConcatChart:
    """One prompt of one model: bars of its layers, and its largest heads."""
    first = rows.row(0, named=True)
    pair = " minus ".join(text.shorten(text.visible(first[f"{name}_token"]), 12) for name in ("target", "rival"))
    where = f"prompt {text.printable(first['prompt'])}: {pair}, in all {text.signed(rows['difference'].sum())}"
    title = theme.heading(look.label, where) if models > 1 else theme.heading(where)
    heads = rows.filter(pl.col("site") == "z")
    panels = [layers_panel(rows, look)]
    if heads.height:
        panels.append(heads_panel(heads, look))
    return alt.hconcat(*panels, spacing=20).properties(title=title)


def layers_panel(rows: pl.DataFrame, look: Look) -> alt.LayerChart:
    """Bars of mixers and FFNs by layer, with the embedding before the first layer."""
    in_layers = rows.filter(pl.col("site").is_in(["z", "mixer_bias", "ffn_out"]))
    depth = (in_layers["layer"].max() or 0) + 1
    bars = (
        rows.with_columns(
            part=pl.when(pl.col("site") == "ffn_out")
            .then(pl.lit("FFN"))
            .when(pl.col("site").is_in(["z", "mixer_bias"]))
            .then(pl.lit("mixer"))
            .otherwise("site")
        )
        .group_by("part", "layer", maintain_order=True)
        .agg(pl.col("difference").sum())
        .with_columns(
            left=pl.when(pl.col("part") == "embed")
            .then(EMBED_AT)
            .when(pl.col("part") == "FFN")
            .then(pl.col("layer"))
            .otherwise(pl.col("layer") - 0.4)
        )
        .with_columns(right=pl.col("left") + 0.4, difference=pl.col("difference").round_sig_figs(4), zero=pl.lit(0.0))
    )
    size = {"width": 500, "height": 150}
    scale = alt.Scale(
        domain=[EMBED_AT - 0.6, depth + (0.6 if "final_norm_bias" in set(rows["site"]) else -0.4)], nice=False
    )
    every = 2 if depth > 16 else 1
    axis = alt.Axis(
        title="layer",
        values=[EMBED_AT + 0.2, *range(0, depth, every)],
        labelExpr="datum.value < 0 ? 'embed' : format(datum.value, 'd')",
        grid=False,
        labelOverlap=False,
    )
    x = alt.X("left:Q", scale=scale, axis=axis)
    y = alt.Y("difference:Q", axis=alt.Axis(title="logit difference", tickCount=5))
    kinds = rows.filter(pl.col("mixer") != "")["mixer"].n_unique()
    shaded = layers_of(rows, "attention") if kinds > 1 else []
    bands = pl.DataFrame(
        {"left": [layer - 0.5 for layer in shaded], "right": [layer + 0.5 for layer in shaded]},
        schema={"left": pl.Float64, "right": pl.Float64},
    )
    drawn = (
        alt.Chart(bars, **size)
        .mark_bar(stroke=look.colour, strokeWidth=0.8)
        .encode(
            x=x,
            x2="right:Q",
            y=y,
            y2="zero:Q",
            fill=alt.condition("datum.part == 'FFN'", alt.value(theme.PAPER), alt.value(look.colour)),
            tooltip=["part:N", "layer:Q", alt.Tooltip("difference:Q", format="+.3g")],
        )
    )
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]}), **size).mark_rule(color=theme.FAINT).encode(y="zero:Q")
    shade = alt.Chart(bands, **size).mark_rect(color=theme.GRID, opacity=0.9).encode(x=x, x2="right:Q")
    return alt.layer(shade, zero, drawn).properties(
        title=alt.TitleParams("Mixers (full) and FFNs (hollow)", fontSize=12, offset=6)
    )


def heads_panel(heads: pl.DataFrame, look: Look) -> alt.LayerChart:
    """The heads with the largest contributions, in order of size."""
    both = heads["mixer"].n_unique() > 1
    largest = (
        heads.sort(pl.col("difference").abs().neg(), "layer", "head")
        .head(MOST_HEADS)
        .with_columns(
            place=pl.int_range(pl.len()),
            name=pl.struct("layer", "head", "mixer").map_elements(
                lambda r: f"{MIXERS[r['mixer']] + ' ' if both else ''}layer {r['layer']}, head {r['head']}", pl.String
            ),
            value=pl.col("difference").map_elements(text.signed, pl.String),
        )
        .select("place", "name", "value", difference=pl.col("difference").round_sig_figs(4), zero=pl.lit(0.0))
    )
    low, high = min(largest["difference"].min(), 0), max(largest["difference"].max(), 0)
    width = 60
    # Names stand at the left, values at the right, bars between.
    y = alt.Y("place:O", axis=None)
    base = alt.Chart(largest, width=width, height=alt.Step(18))
    scale = alt.Scale(domain=[low, high if high > low else low + 1], nice=False)
    bars = base.mark_bar(height=10, color=look.colour).encode(
        x=alt.X("difference:Q", scale=scale, axis=None), x2="zero:Q", y=y
    )
    names = base.mark_text(align="right", dx=-8).encode(x=alt.value(0), y=y, text="name:N")
    values = base.mark_text(align="left", dx=8, color=theme.MUTED).encode(x=alt.value(width), y=y, text="value:N")
    return (bars + names + values).properties(
        title=alt.TitleParams("Largest heads", fontSize=12, offset=6, frame="bounds")
    )
