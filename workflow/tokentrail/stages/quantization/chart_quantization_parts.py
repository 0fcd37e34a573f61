"""Which part of the model suffers most from rounding."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.looks import Look, looks
from tokentrail.stages.quantization import quantized

TABLES = ("quantization",)
CAPTION = """
How far the predictions move when one part of the model is rounded and everything else keeps its values: the mean KL
from the float32 model over the positions of the passage, on a logarithmic scale, with its bootstrap interval; where no
passage was read, the KL on the prompt. The number of bits and the group size are the same in all rows. A tied token
table has three rows: rounded in both its uses, only where tokens are looked up, only where logits are made. The
hollow marks at the bottom are several parts at once. Each panel is one model.

It does not show that the parts' errors add up, which the rows with several parts at once answer for their own sets
alone. A part with more weights has more to lose, so that this is not the damage for each bit that is saved.
"""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    title = "Which part needs its precision?"
    rows = quantized.by_part(quantized.first_passage(tables["quantization"]))
    models = theme.drawn(rows, settings)
    if not models:
        nothing = theme.nothing("No scheme is configured that quantizes one part at a time.")
        return theme.finish(nothing, title, CAPTION, settings)
    rows = rows.filter(pl.col("model").is_in(models))
    ends = pl.concat([rows[name].drop_nulls() for name in ("moved", "low", "high")])
    domain = (ends.min() / 1.6, ends.max() * 1.6)
    of = looks(settings)
    blocks = [panel(rows.filter(pl.col("model") == model), of[model], domain, len(models)) for model in models]
    told = quantized.told(rows.with_columns(pl.col("families").replace(quantized.PARTS)), settings, {"families": ""})
    return theme.finish(alt.vconcat(*blocks, spacing=18), title, CAPTION, settings, told)


def panel(rows: pl.DataFrame, look: Look, domain: tuple[float, float], models: int) -> alt.LayerChart:
    places = {part: place for place, part in enumerate(quantized.PARTS)}
    shown = rows.select(
        "moved",
        "low",
        "high",
        place=pl.col("families").replace_strict(places, return_dtype=pl.Int64),
        part=pl.col("families").replace_strict(quantized.PARTS, return_dtype=pl.String),
        several=pl.col("families").is_in(["compute", "all"]),
        start=pl.lit(domain[0]),
        label=pl.col("moved").map_elements(lambda kl: f"{kl:.2g}", pl.String),
    ).sort("place")
    names = shown["part"].to_list()
    size, bits = rows["group_size"][0], rows["bits"][0]
    group = "one scale a row" if size is None else f"groups of {size:,}"
    where = f"{bits} bits, {group}, simulated" + (f"; passage {rows['passage'][0]}" if rows["passage"][0] else "")
    x = alt.X(
        "moved:Q",
        scale=alt.Scale(type="log", domain=list(domain), nice=False),
        axis=theme.log_axis(quantized.KL, domain, quantized.SMALLEST),
    )
    y = alt.Y("part:N", sort=names, axis=alt.Axis(title=None, labelLimit=220, grid=False))
    base = alt.Chart(shown, width=theme.WIDTH - 200, height=alt.Step(22)).encode(y=y)
    tooltip = ["part:N", *(alt.Tooltip(f"{end}:Q", format=".3g") for end in ("moved", "low", "high"))]
    layers = [
        base.mark_rule(strokeWidth=1, color=theme.FAINT).encode(x=alt.X("start:Q"), x2="moved:Q"),
        base.mark_rule(strokeWidth=3, color=look.colour).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(size=64, opacity=1, strokeWidth=1.8, stroke=look.colour).encode(
            x=x,
            fill=alt.condition("datum.several", alt.value(theme.PAPER), alt.value(look.colour)),
            tooltip=tooltip,
        ),
        base.mark_text(align="left", dx=9, dy=-7, fontSize=11, color=theme.MUTED).encode(x=x, text="label:N"),
    ]
    title = theme.heading(look.label if models > 1 else where, where if models > 1 else "")
    return alt.layer(*layers).properties(title=title)
