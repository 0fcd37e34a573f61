"""Where the operations of one pass go, by the length of the input."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes

TABLES = ("arithmetic",)
CAPTION = """
The share of each kind of part in the operations of one pass over one input, for several lengths; the total stands at
the right, where a product and a sum count as two. Work that a token causes alone grows with the length, and so keeps
its share; work on pairs of positions grows with its square.

It does not show time: a part can be slow because its weights must be fetched, not because it has much to compute.
Norms, softmax and other small work are not counted, and pairs that the causal mask hides are.
"""
KINDS = {
    "attention, each token": ("queries, keys and values", "attention output"),
    "attention, pairs of positions": ("attention scores", "attention weights times values"),
    "Mamba2": (
        "Mamba2 input projection",
        "Mamba2 convolution",
        "Mamba2 state, written",
        "Mamba2 state, read",
        "Mamba2 output projection",
    ),
    "FFN": ("FFN up", "FFN down"),
    "logits": ("logits",),
}
SHADES = ["#12336b", "#cc7f0c", "#2c8170", "#8a94a3", "#5b4a8a"]


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    flops = tables["arithmetic"].filter(pl.col("quantity") == "flops")
    flops = flops.filter(pl.col("rows") == pl.col("rows").min())
    title = "Where does the work go?"
    models = theme.drawn(flops, settings)
    if not models:
        return theme.finish(theme.nothing("No work was counted."), title, CAPTION, settings)
    kind = {part: name for name, parts in KINDS.items() for part in parts}
    parts = (
        flops.filter(pl.col("part") != "all")
        .with_columns(kind=pl.col("part").replace_strict(kind))
        .group_by("model", "tokens", "kind", maintain_order=True)
        .agg(pl.col("value").sum())
        .with_columns(share=pl.col("value") / pl.col("value").sum().over("model", "tokens"))
    )
    present = [name for name in KINDS if name in set(parts["kind"])]
    side_by_side = min(theme.columns(len(models)), 2)
    of = looks(settings)
    panels = [panel(parts.filter(pl.col("model") == name), of[name], present, side_by_side) for name in models]
    told = extremes(
        parts, "share", "Share of the operations of a pass", settings, {"tokens": "tokens", "kind": ""}, text.percent
    )
    return theme.finish(
        alt.vconcat(legend(present), theme.grid(panels, side_by_side), spacing=10), title, CAPTION, settings, told
    )


def legend(present: list[str]) -> alt.LayerChart:
    """Names each kind beside its shade."""
    entries, left = [], 0
    for name in present:
        entries.append({"kind": name, "left": left, "text": left + 18})
        left += 40 + 5.8 * len(name)
    place = alt.Scale(domain=[0, theme.WIDTH], nice=False)
    base = alt.Chart(pl.DataFrame(entries), width=theme.WIDTH, height=18)
    mark = base.mark_point(shape="square", size=110, filled=True, opacity=1, xOffset=6)
    mark = mark.encode(
        x=alt.X("left:Q", scale=place, axis=None), color=alt.Color("kind:N", scale=shades(), legend=None)
    )
    return mark + base.mark_text(align="left").encode(x=alt.X("text:Q", scale=place, axis=None), text="kind:N")


def shades() -> alt.Scale:
    return alt.Scale(domain=list(KINDS), range=SHADES)


def panel(parts: pl.DataFrame, look: Look, present: list[str], side_by_side: int) -> alt.LayerChart:
    shown = parts.with_columns(
        order=pl.col("kind").replace_strict({name: place for place, name in enumerate(present)}),
        operations=pl.col("value").map_elements(text.operations, pl.String),
    ).drop("model")
    totals = shown.group_by("tokens", maintain_order=True).agg(pl.col("value").sum())
    totals = totals.with_columns(told=pl.col("value").map_elements(text.operations, pl.String))
    width = theme.panel_width(side_by_side, room=130) - 70
    size = {"width": width, "height": alt.Step(30)}
    y = alt.Y("tokens:O", axis=alt.Axis(title="tokens", format=",d", grid=False))
    bars = (
        alt.Chart(shown, **size)
        .mark_bar(height=20)
        .encode(
            x=alt.X("share:Q", stack="zero", axis=alt.Axis(title="share of the operations", format="%", tickCount=5)),
            y=y,
            color=alt.Color("kind:N", scale=shades(), legend=None),
            order=alt.Order("order:Q"),
            tooltip=["kind:N", "tokens:O", alt.Tooltip("share:Q", format=".1%"), "operations:N"],
        )
    )
    told = alt.Chart(totals, **size).mark_text(align="left", dx=8, color=theme.MUTED)
    told = told.encode(x=alt.value(width), y=y, text="told:N")
    return alt.layer(bars, told).properties(title=theme.heading(text.shorten(look.label, 44)))
