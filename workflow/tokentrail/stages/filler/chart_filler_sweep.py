"""The target's probability as the name moves further and further away."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import ordered

TABLES = ("filler_sweep",)
CAPTION = """
The probability of the name at the end of the same question, with more and more other text between the two. The
horizontal axis counts the tokens from the name to the last token, on a logarithmic scale; each row of panels is one
text that was put in between, a whole number of times. At the left the model as it was trained; at the right with every
attention layer switched off. A full mark means that the name is the model's first answer, a hollow mark that it is not.
A cross on the axis is a length for which a model has no positions; it was not run.

It does not show what carries the name, only over which distance it is carried. Repeating one text is not the same as a
long text: it is easier to predict, and a model may treat the repeats in its own way. A text that holds other names asks
for more than distance. Each point is one input.
"""
VARIANTS = {"as_trained": "As trained", "attention_off": "All attention off"}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    sweep = tables["filler_sweep"].filter(pl.col("variant").is_in(list(VARIANTS)))
    title = "How far away may the name be?"
    models = theme.drawn(sweep, settings)
    if not models:
        return theme.finish(theme.nothing("No filler is configured."), title, CAPTION, settings)
    sweep = sweep.filter(pl.col("model").is_in(models))
    low, high = max(sweep["distance"].min(), 1) / 1.25, sweep["distance"].max() * 1.25
    fillers = ordered(sweep, "filler")
    variants = [variant for variant in VARIANTS if variant in set(sweep["variant"])]
    panels = [
        panel(
            sweep.filter((pl.col("filler") == filler) & (pl.col("variant") == variant)),
            filler,
            variant,
            settings,
            (low, high),
            ticks(sweep.filter(pl.col("filler") == filler)["distance"].unique().sort().to_list(), high / low),
            leftmost=variant == variants[0],
            lowest=filler == fillers[-1],
        )
        for filler in fillers
        for variant in variants
    ]
    body = theme.grid(panels, len(variants))
    told = extremes(
        sweep.with_columns(pl.col("variant").replace(VARIANTS)),
        "target_probability",
        "Probability of the name",
        settings,
        {"filler": "filler", "distance": "tokens back", "variant": ""},
        text.probability,
    )
    return theme.finish(
        alt.vconcat(theme.key(settings, models), body) if len(models) > 1 else body, title, CAPTION, settings, told
    )


def ticks(distances: list[int], span: float) -> list[int]:
    """The distances themselves, without those too close to the one before to be read apart."""
    kept: list[int] = []
    for distance in distances:
        if not kept or math.log(distance / max(kept[-1], 1)) > 0.1 * math.log(max(span, 1.01)):
            kept.append(distance)
    return kept


def panel(
    rows: pl.DataFrame,
    filler: str,
    variant: str,
    settings: dict[str, Any],
    domain: tuple[float, float],
    at: list[int],
    leftmost: bool,
    lowest: bool,
) -> alt.LayerChart:
    of = looks(settings)
    run = rows.filter(pl.col("status") == "ok").select(
        "model",
        "repeats",
        pl.col("distance").clip(1),
        "tokens",
        probability=pl.col("target_probability").round_sig_figs(4),
        first=pl.col("target_rank") == 0,
        top=pl.col("top1_token").map_elements(text.visible, pl.String),
    )
    size = {"width": theme.panel_width(2, room=60), "height": 150}
    x_scale, y_scale = alt.Scale(type="log", domain=list(domain), nice=False), alt.Scale(domain=[0, 1], nice=False)
    x = alt.X(
        "distance:Q",
        scale=x_scale,
        axis=alt.Axis(
            title="tokens from the name to the end (log)" if lowest else None,
            values=at,
            format=",d",
            labelOverlap=True,
        ),
    )
    y = alt.Y(
        "probability:Q",
        scale=y_scale,
        axis=alt.Axis(title="probability of the name" if leftmost else None, values=[0, 0.5, 1]),
    )
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    base = alt.Chart(run, **size).encode(x=x, y=y)
    lines = base.mark_line(strokeWidth=1.8).encode(
        color=colour, strokeDash=alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None)
    )
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    tooltip = [
        "model:N",
        alt.Tooltip("repeats:Q"),
        alt.Tooltip("tokens:Q", format=",d"),
        alt.Tooltip("probability:Q", format=".4g"),
        alt.Tooltip("top:N", title="most likely"),
    ]
    full = base.transform_filter("datum.first").mark_point(size=60, filled=True, opacity=1)
    hollow = base.transform_filter("!datum.first").mark_point(size=60, fill=theme.PAPER, opacity=1, strokeWidth=1.8)
    marks = [
        full.encode(color=colour, shape=shape, tooltip=tooltip),
        hollow.encode(
            stroke=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
            shape=shape,
            tooltip=tooltip,
        ),
    ]
    beyond = rows.filter(pl.col("status") != "ok").select(
        "model", "tokens", pl.col("distance").clip(1), zero=pl.lit(0.0)
    )
    crosses = (
        alt.Chart(beyond, **size)
        .mark_text(text="×", fontSize=16, fontWeight="bold", dy=-8)
        .encode(
            x=x,
            y=alt.Y("zero:Q", scale=y_scale),
            color=alt.Color("model:N", scale=theme.scale(settings, "ink"), legend=None),
            tooltip=["model:N", alt.Tooltip("tokens:Q", format=",d")],
        )
    )
    title = theme.heading(
        VARIANTS[variant], [f"filler {text.shorten(text.printable(filler), 40)}", *missing(beyond, of)]
    )
    # The crosses are text, whose colours are darker than those of the lines.
    return alt.layer(alt.layer(lines, *marks), crosses).resolve_scale(color="independent").properties(title=title)


def missing(beyond: pl.DataFrame, of: dict[str, Any]) -> list[str]:
    """One line for each model that has no positions for some of the lengths."""
    lengths = beyond.group_by("model", maintain_order=True).agg(pl.col("tokens").unique().sort())
    return [
        f"× {text.shorten(of[model].label, 28)} has no positions for {' or '.join(map(text.whole, tokens))} tokens"
        for model, tokens in lengths.iter_rows()
    ]
