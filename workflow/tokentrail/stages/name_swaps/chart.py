"""Name swaps of the small sets, name by name."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import ordered, set_sizes

TABLES = ("name_swaps",)
CAPTION = """
The probability of the name that stands in the sentence, one bar for each name that was put in. For a name that the
tokenizer cuts into pieces, it is the probability of the first piece. A full bar means that the name is the model's
first answer; a hollow bar means that it is not, and the label gives its rank (0 is the first) and what came first.
Names that come first, each in its own sentence, show that the model does not give one favourite name every time.

It does not show how the model finds the name; and a handful of names in one sentence says little about other
sentences.
"""
MOST_NAMES = 12
"""Sets with more names are drawn as distributions, by name_swaps_broad."""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    swaps = tables["name_swaps"]
    small = [name for name, names in set_sizes(swaps).items() if names <= MOST_NAMES]
    swaps = swaps.filter(pl.col("set").is_in(small))
    title = "Is the name in the sentence the answer?"
    models = theme.drawn(swaps, settings)
    if not models:
        return theme.finish(
            theme.nothing(f"No set of at most {MOST_NAMES} names is configured."), title, CAPTION, settings
        )
    side_by_side = theme.columns(len(models))
    groups = swaps.select("set", "template").unique(maintain_order=True).rows()
    swaps = swaps.with_columns(
        first=pl.col("rank") == 0,
        label=pl.struct("probability", "rank", "top1_token", "target_token", "pieces").map_elements(label, pl.String),
    )
    width = theme.panel_width(side_by_side, room=90)
    # The axis ends at 1; room beyond it is for the labels.
    room = pl.col("label").str.len_chars() * 6.4 + 12
    edge = swaps.select((pl.col("probability") * width / (width - room).clip(20)).max()).item()
    domain = [0, max(1.02, edge)]
    blocks = [
        theme.grid(
            [
                panel(part.filter(pl.col("model") == model), looks(settings)[model], domain, width, where)
                for model in models
            ],
            side_by_side,
        )
        for part, where in ((select(swaps, *group), describe(group, groups)) for group in groups)
    ]
    told = extremes(
        swaps,
        "probability",
        "Probability of the name's first piece",
        settings,
        {"template": "sentence", "name": ""},
        text.probability,
    )
    return theme.finish(alt.vconcat(*blocks), title, CAPTION, settings, told)


def select(swaps: pl.DataFrame, set_name: str, template: str) -> pl.DataFrame:
    return swaps.filter((pl.col("set") == set_name) & (pl.col("template") == template))


def describe(group: tuple[str, str], groups: list[tuple[str, str]]) -> str:
    """Set and template, as far as they are needed to tell the groups apart."""
    return f"set {group[0]}, sentence {group[1]}" if len(groups) > 1 else ""


def panel(swaps: pl.DataFrame, look: Look, domain: list[float], width: int, where: str) -> alt.LayerChart:
    names = ordered(swaps, "name")
    shown = swaps.with_columns(
        shown_name=pl.col("name").map_elements(lambda n: text.shorten(text.printable(n), 20), pl.String)
    )
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1] if width > 250 else [0, 0.5, 1]
    x = alt.X(
        "probability:Q",
        scale=alt.Scale(domain=domain, nice=False),
        axis=alt.Axis(values=ticks, title="probability of the name's first piece", titleAnchor="start", domain=False),
    )
    order = [text.shorten(text.printable(name), 20) for name in names]
    y = alt.Y("shown_name:N", sort=order, axis=alt.Axis(title=None, grid=False, labelColor=theme.INK))
    base = alt.Chart(shown, width=width, height=alt.Step(26)).encode(x=x, y=y)
    bars = base.mark_bar(height=13, stroke=look.colour, strokeWidth=1.3).encode(
        fill=alt.condition("datum.first", alt.value(look.colour), alt.value(theme.PAPER)),
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("probability:Q", format=".4g"), alt.Tooltip("rank:Q")],
    )
    labels = base.mark_text(align="left", dx=6).encode(text="label:N")
    return (bars + labels).properties(title=theme.heading(look.label, where))


def label(row: dict[str, Any]) -> str:
    p = text.probability(row["probability"])
    piece = f" for {text.shorten(text.visible(row['target_token']), 10)}" if row["pieces"] > 1 else ""
    if row["rank"] == 0:
        return p + piece
    first = text.shorten(text.visible(row["top1_token"]), 12)
    return f"{p}{piece}, rank {text.whole(row['rank'])}; first is {first}"
