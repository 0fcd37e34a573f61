"""Who takes how much from whom: maps of a few heads, chosen by a stated rule."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import maps, text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import MIXERS, first_prompt, looking, target_positions

TABLES = ("mixing", "tokens", "next_token")
CAPTION = """
How much each token (a row) takes from each token before it (a column); nothing can be taken from later ones. Of the
attention heads of a model, the one is drawn whose last token puts the largest weight on the target where it stands in
the text, or, if it does not stand there, on any token but the first and the last; of the Mamba2 heads likewise, by the
size of the weight. The first token can take much of the weight, and always a large share where few can be seen, so
beside the map of all weights the first column is left out and the shades start anew; beside a Mamba2 head stands the
mean over the heads of its layer. A model that has both kinds also shows the attention layer of that head and the Mamba2
layer nearest to it, as means over heads. Every model is drawn on its first prompt.

It does not show what the tokens hand over, nor what a head is for: a large weight is no cause. The heads were picked
because they look at the target, so they say nothing of the others. Mamba2 weights are the unrolled recurrence: they do
not sum to 1, may be negative, and are shown by their size.
"""
LEAST_SIDE, MOST_SIDE = 230, 300


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    mixing = first_prompt(tables["mixing"])
    title = "Who takes how much from whom?"
    models = theme.drawn(mixing, settings)
    if not models:
        return theme.finish(theme.nothing("The mixing was recorded for no prompt."), title, CAPTION, settings)
    of = looks(settings)
    blocks = []
    for model in models:
        rows = mixing.filter(pl.col("model") == model)
        here = (pl.col("model") == model) & (pl.col("prompt") == rows["prompt"][0])
        tokens = tables["tokens"].filter(here)
        blocks.append(
            block(rows, tokens, target_positions(tables["next_token"].filter(here), tokens), of[model], len(models))
        )
    told = extremes(
        mixing.with_columns(pl.col("weight").abs()),
        "weight",
        "Size of a weight, over all layers and heads",
        settings,
        {
            "mixer": "",
            "layer": "layer",
            "head": "head",
            "query_position": "from position",
            "key_position": "to position",
        },
    )
    return theme.finish(alt.vconcat(*blocks, spacing=30), title, CAPTION, settings, told)


def block(rows: pl.DataFrame, tokens: pl.DataFrame, targets: list[int], look: Look, models: int) -> alt.VConcatChart:
    """One model: for each kind of mixer the chosen head, with the first column and without; then two layers' means."""
    picked = {row["mixer"]: row for row in looking(rows, targets).to_dicts()}
    pairs = []
    for mixer in (kind for kind in MIXERS if kind in picked):
        layer, head = picked[mixer]["layer"], picked[mixer]["head"]
        weights = one_head(rows, layer, head)
        name, note = f"{MIXERS[mixer]} layer {layer}, head {head}", f"all weights; {shown_weight(weights, targets)}"
        if mixer == "attention":
            beside = map_of(weights.filter(pl.col("key_position") > 0), tokens, name, "first column left out")
        else:
            beside = map_of(mean_of_heads(rows, layer), tokens, f"Mamba2 layer {layer}", "all weights, mean over heads")
        pairs.append(
            alt.hconcat(map_of(weights, tokens, name, note), beside, spacing=40).resolve_scale(color="independent")
        )
    if len(picked) == 2:
        layer = picked["attention"]["layer"]
        mamba2 = rows.filter(pl.col("mixer") == "mamba2")["layer"].unique()
        nearest = min(mamba2.to_list(), key=lambda other: (abs(other - layer), -other))
        means = [
            map_of(mean_of_heads(rows, at), tokens, f"{MIXERS[mixer]} layer {at}", "all weights, mean over heads")
            for mixer, at in (("attention", layer), ("mamba2", nearest))
        ]
        pairs.append(alt.hconcat(*means, spacing=40).resolve_scale(color="independent"))
    where = f"prompt {text.printable(rows['prompt'][0])}"
    drawn = alt.vconcat(*pairs, spacing=26).resolve_scale(color="independent")
    return drawn.properties(title=theme.heading(look.label if models > 1 else where, where if models > 1 else ""))


def one_head(rows: pl.DataFrame, layer: int, head: int) -> pl.DataFrame:
    return rows.filter((pl.col("layer") == layer) & (pl.col("head") == head)).select(
        "query_position", "key_position", pl.col("weight").abs()
    )


def mean_of_heads(rows: pl.DataFrame, layer: int) -> pl.DataFrame:
    return (
        rows.filter(pl.col("layer") == layer)
        .group_by("query_position", "key_position", maintain_order=True)
        .agg(pl.col("weight").abs().mean())
    )


def shown_weight(weights: pl.DataFrame, targets: list[int]) -> str:
    """What the last token puts on the target, in words."""
    last = weights.filter(pl.col("query_position") == pl.col("query_position").max())
    if not targets:
        return "target not in the text"
    return (
        f"last token to target {text.probability(last.filter(pl.col('key_position').is_in(targets))['weight'].max())}"
    )


def map_of(weights: pl.DataFrame, tokens: pl.DataFrame, name: str, note: str) -> alt.LayerChart:
    """Queries down, keys across."""
    length = max(tokens.height, weights["query_position"].max() + 1)
    side = max(LEAST_SIDE, min(MOST_SIDE, 16 * length))
    top = weights["weight"].max() or 1.0
    shown = weights.select("query_position", position=pl.col("key_position"), weight=pl.col("weight").round_sig_figs(3))
    positions = list(range(length))
    x = alt.X("position:O", axis=None, scale=alt.Scale(domain=positions))
    y = alt.Y("query_position:O", axis=None, scale=alt.Scale(domain=positions))
    key = maps.bar("weight", [0, top / 2, top], side, ".2~g", maps.label_room(tokens))
    fill = alt.Color("weight:Q", scale=maps.sequential(top), legend=key)
    base = maps.squares(
        shown,
        x,
        y,
        fill,
        [
            alt.Tooltip("query_position:O", title="takes"),
            alt.Tooltip("position:O", title="from"),
            alt.Tooltip("weight:Q", format=".3g"),
        ],
    )
    across = maps.token_labels(tokens, "position", "x", side)
    down = maps.token_labels(tokens, "query_position", "y", side)
    return alt.layer(base, across, down).properties(
        width=side, height=side, title=alt.TitleParams(name, subtitle=note, fontSize=12, offset=6)
    )
