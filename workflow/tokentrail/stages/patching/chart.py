"""Where the difference between two names is carried: values of one run put into the other."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import colour, maps, text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import layers_of

TABLES = ("patching", "tokens")
CAPTION = """
Two prompts that differ in one name are run; then one value of the second run is put into the first: at one layer (a
row), at one token (a column). A square tells how far the answer moves to the other name: 0 changes nothing (below 0.01
is left blank), 1 (orange; a dot from 0.5 on) is the answer of the other prompt. Blue is a move the other way.
There is a panel for the whole stream that enters a layer, for what the mixer adds, for what the FFN adds, and for the
Mamba2 state after the token. The shades end at -1 and 1; a line below each model says which values lie outside. The
first columns are at the first token that differs; tokens that differ are written in orange. Each model is drawn on its
first pair of prompts.

It does not show a part that several places carry together: each square changes one place and leaves the rest. Nor does
it show how the model works without the name, as an ablation does; it shows only where this difference passes.
"""
SITES = {
    "resid_pre": "The stream into the layer",
    "mixer_out": "The mixer adds",
    "ffn_out": "The FFN adds",
    "ssm_state": "The Mamba2 state",
}
LIMIT = 1.0
WHITE = 0.01
"""A square below this looks like the page, and is not drawn."""
MARKED = 0.5
"""Squares that move the answer at least this far have a dot, so that greyscale tells them from the other end."""
DIFFERS = colour.readable(maps.ABOVE)
"""The colour of the tokens that differ."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = tables["patching"]
    rows = rows.filter(
        (pl.col("prompt") == pl.col("prompt").first().over("model"))
        & (pl.col("source_prompt") == pl.col("source_prompt").first().over("model"))
    )
    title = "Where is the name carried?"
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing("No pair of prompts is configured for patching."), title, CAPTION, settings)
    of = looks(settings)
    blocks = [
        block(
            rows.filter(pl.col("model") == model),
            tables["tokens"].filter(pl.col("model") == model),
            of[model],
            len(models),
        )
        for model in models
    ]
    told = extremes(
        rows,
        "recovered",
        "Share of the way to the other prompt's answer",
        settings,
        {"site": "", "layer": "layer", "position": "position", "token": ""},
    )
    return theme.finish(alt.vconcat(*blocks, spacing=30), title, CAPTION, settings, told)


def block(rows: pl.DataFrame, tokens: pl.DataFrame, look: Look, models: int) -> alt.VConcatChart:
    """One model: a map for each site, and the key of the shades once."""
    prompt, source = rows["prompt"][0], rows["source_prompt"][0]
    labels = rows.select("position", "token").unique("position", maintain_order=True).sort("position")
    labels = labels.with_columns(differs=pl.col("position").is_in(differing(tokens, prompt, source)))
    sites = [site for site in SITES if site in set(rows["site"])]
    side_by_side = theme.columns(len(sites))
    attention = layers_of(rows, "attention") if rows["mixer"].n_unique() > 1 else []
    panels = [
        panel(rows.filter(pl.col("site") == site), SITES[site], labels, attention, rows, side_by_side, index)
        for index, site in enumerate(sites)
    ]
    where = f"prompt {text.printable(prompt)} with values of {text.printable(source)}"
    drawn = alt.concat(*panels, columns=side_by_side, spacing=16).resolve_scale(color="shared")
    outside = told_outside(rows)
    lines = [line for line in (where if models > 1 else "", outside) if line]
    return drawn.properties(title=theme.heading(look.label if models > 1 else where, lines))


def differing(tokens: pl.DataFrame, prompt: str, source: str) -> list[int]:
    """Positions at which two prompts have different tokens."""
    both = tokens.filter(pl.col("prompt") == prompt).join(
        tokens.filter(pl.col("prompt") == source), on="position", suffix="_source", maintain_order="left"
    )
    return both.filter(pl.col("token_id") != pl.col("token_id_source"))["position"].to_list()


def told_outside(rows: pl.DataFrame) -> str:
    beyond = rows.filter(pl.col("recovered").abs() > LIMIT * 1.005)["recovered"]
    if beyond.is_empty():
        return ""
    low, high = beyond.min(), beyond.max()
    span = f"{text.decimals(low)} to {text.decimals(high)}" if beyond.len() > 1 else text.decimals(low)
    squares = "1 square lies" if beyond.len() == 1 else f"{text.whole(beyond.len())} squares lie"
    return f"{squares} outside the shades, at {span}"


def panel(
    rows: pl.DataFrame,
    heading: str,
    labels: pl.DataFrame,
    attention: list[int],
    everything: pl.DataFrame,
    side_by_side: int,
    index: int,
) -> alt.LayerChart:
    layers = everything["layer"].max() + 1
    width, height = theme.panel_width(side_by_side, room=66), max(110, min(9 * layers, 300))
    shown = rows.select("position", "layer", recovered=pl.col("recovered").round(3)).filter(
        pl.col("recovered").abs() > WHITE
    )
    positions = labels["position"].to_list()
    x = alt.X("position:O", axis=None, scale=alt.Scale(domain=positions))
    named = (
        f"indexof({attention}, datum.value) >= 0 ? 'attn ' + datum.value : datum.value" if attention else "datum.value"
    )
    ticks = sorted({*range(0, layers, 4), layers - 1} - {layers - 2})
    ticks = sorted({*(t for t in ticks if all(abs(t - a) > 1 for a in attention)), *attention})
    first = index % side_by_side == 0
    title = ("layer (attn: attention)" if attention else "layer") if first else None
    y = alt.Y(
        "layer:O",
        scale=alt.Scale(domain=list(range(layers)), reverse=True),
        axis=alt.Axis(title=title, values=ticks, labelExpr=named, grid=False, labelPadding=4),
    )
    fill = alt.Color(
        "recovered:Q",
        scale=maps.diverging(LIMIT),
        legend=maps.bar("share of the way to the other prompt's answer", [-1, 0, 1], 260),
    )
    base = maps.squares(
        shown,
        x,
        y,
        fill,
        [alt.Tooltip("layer:O"), alt.Tooltip("position:O"), alt.Tooltip("recovered:Q", format=".3g")],
        line=None,
    )
    dots = (
        alt.Chart(shown.filter(pl.col("recovered") >= MARKED).select("position", "layer"))
        .mark_circle(size=7, color=theme.INK, opacity=1)
        .encode(x=x, y=y)
    )
    changed = labels.filter("differs")
    named_tokens = [
        maps.token_labels(labels.filter(~pl.col("differs")), "position", "x", height),
        *([maps.token_labels(changed, "position", "x", height, DIFFERS, "bold")] if changed.height else []),
    ]
    return alt.layer(base, dots, *named_tokens).properties(
        width=width,
        height=height,
        view=alt.ViewConfig(stroke=theme.FAINT, strokeWidth=0.6),
        title=alt.TitleParams(heading, fontSize=12, offset=6),
    )
