"""Where the parameters are."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import TENSOR_GROUPS

TABLES = ("census",)
CAPTION = """
The share of each family of tensors in all parameters of a model. A table that serves both as embedding and as output
is one tensor and is counted once, under token embedding.

It does not show bytes or work: a family may be stored in fewer bits than another, and the token embedding is read one
row at a time at the input but as a whole at the output.
"""


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    census = tables["census"]
    title = "Where are the parameters?"
    models = theme.drawn(census, settings)
    if not models:
        return theme.finish(theme.nothing("No tensor was counted."), title, CAPTION, settings)
    families = (
        census.filter(pl.col("model").is_in(models))
        .group_by("model", "family", maintain_order=True)
        .agg(pl.col("family_share").first(), pl.col("counted_parameters").sum())
        .filter(pl.col("counted_parameters") > 0)
    )
    present = [family for family in TENSOR_GROUPS if family in set(families["family"])]
    side_by_side = theme.columns(len(models))
    panels = [
        panel(families.filter(pl.col("model") == model), looks(settings)[model], present, side_by_side)
        for model in models
    ]
    told = extremes(
        families.with_columns(pl.col("family").replace_strict(TENSOR_GROUPS)),
        "family_share",
        "Share of a family in all parameters",
        settings,
        {"family": ""},
        text.percent,
    )
    return theme.finish(theme.grid(panels, side_by_side), title, CAPTION, settings, told)


def panel(families: pl.DataFrame, look: Look, present: list[str], side_by_side: int) -> alt.LayerChart:
    # Families that only other models have stay in the picture, at nothing, so that the rows line up.
    full = pl.DataFrame({"family": present}).join(families, on="family", how="left", maintain_order="left")
    shown = full.with_columns(
        pl.col("family_share").fill_null(0.0),
        name=pl.col("family").replace_strict(TENSOR_GROUPS),
        label=pl.struct("family_share", "counted_parameters").map_elements(
            lambda r: (
                f"{text.percent(r['family_share'])} ({text.millions(r['counted_parameters'])})"
                if r["counted_parameters"]
                else "none"
            ),
            pl.String,
        ),
    )
    total = text.millions(families["counted_parameters"].sum())
    width = theme.panel_width(side_by_side, room=130)
    scale = alt.Scale(domain=[0, 1 + 76 / max(width - 76, 76)], nice=False)
    axis = alt.Axis(title="share of all parameters", titleAnchor="start", values=[0, 0.5, 1], format="%", domain=False)
    y_axis = alt.Axis(title=None, grid=False, labelColor=theme.INK)
    base = alt.Chart(shown.drop("model"), width=width, height=alt.Step(24)).encode(
        x=alt.X("family_share:Q", scale=scale, axis=axis),
        y=alt.Y("name:N", sort=[TENSOR_GROUPS[family] for family in present], axis=y_axis),
    )
    bars = base.mark_bar(height=13, color=look.colour)
    labels = base.mark_text(align="left", dx=6).encode(text="label:N")
    return (bars + labels).properties(title=theme.heading(look.label, f"{total} parameters"))
