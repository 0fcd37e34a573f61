"""Every timed case under the roof that the machine's two limits make. Williams, Waterman and Patterson 2009."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.charts.looks import looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import OURS
from tokentrail.stages.timing import timed

TABLES = ("timing_summary",)
CAPTION = """
Every case that was timed, by how many operations it does for each byte that it must read at least once (to the right)
and how many operations it did in a second (upwards), both on logarithmic axes. The roof is what the same process
measured as its limits: on the slope, reading from memory at full rate; on the flat part, float32 matrix products at
full rate. Full marks are ours, hollow ones transformers.

It does not show measured memory traffic: operations and bytes are what the model needs, counted from its shape. Values
that are fetched more than once make a case slower than the roof, and weights that stay in a cache of the processor can
lift a small model above the slope.
"""
KINDS = {
    "decode": ("decode, one row", "circle"),
    "batch": ("decode, several rows", "square"),
    "prefill": ("prefill", "triangle-up"),
}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    title = "How near to the machine's limits?"
    rows = tables["timing_summary"].filter(pl.col("status") == "ok")
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing(timed.NOTHING), title, CAPTION, settings)
    side_by_side = min(theme.columns(len(models)), 2)
    width = theme.panel_width(side_by_side, room=90)
    rows = rows.filter(pl.col("model").is_in(models)).with_columns(gflops=pl.col("achieved_flops") / 1e9)
    x_domain = [rows["intensity"].min() / 1.6, rows["intensity"].max() * 1.6]
    y_domain = [rows["gflops"].min() / 1.6, max(rows["gflops"].max(), rows["matrix_peak"].max() / 1e9) * 1.6]
    drawn = [
        panel(rows.filter(pl.col("model") == model), x_domain, y_domain, settings, width).properties(
            title=theme.heading(looks(settings)[model].label)
        )
        for model in models
    ]
    told = extremes(
        rows.filter(pl.col("implementation") == OURS),
        "gflops",
        "GFLOP/s reached",
        settings,
        {"kind": "", "context": "tokens", "batch": "rows"},
    )
    return theme.finish(theme.grid(drawn, side_by_side), title, CAPTION, settings, told)


def panel(
    rows: pl.DataFrame, x_domain: list[float], y_domain: list[float], settings: dict[str, Any], width: int
) -> alt.LayerChart:
    x_scale = alt.Scale(type="log", domain=x_domain, nice=False)
    y_scale = alt.Scale(type="log", domain=y_domain, nice=False)

    def x(column: str) -> alt.X:
        axis = alt.Axis(title="operations a byte (log)", values=theme.decades(*x_domain), format="~g")
        return alt.X(f"{column}:Q", scale=x_scale, axis=axis)

    def y(column: str) -> alt.Y:
        axis = alt.Axis(title="GFLOP/s (log)", values=theme.decades(*y_domain), format="~g")
        return alt.Y(f"{column}:Q", scale=y_scale, axis=axis)

    size = {"width": width, "height": 230}
    roof = alt.Chart(roof_of(rows, x_domain), **size).mark_line(color=theme.INK, strokeWidth=1.4)
    values = ("intensity", "gflops", "fraction_of_peak", "fraction_of_bandwidth")
    values = ("intensity", "gflops", "fraction_of_peak", "fraction_of_bandwidth")
    drawn = rows.select("implementation", "context", "batch", pl.col(values).round_sig_figs(4), kind=said())
    tooltip = [f"{name}:N" if name in ("implementation", "kind") else f"{name}:Q" for name in drawn.columns]
    legend = alt.Legend(title=None, orient="top", symbolFillColor=theme.INK, symbolStrokeColor=theme.INK)
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=[words for words, _ in KINDS.values()], range=[shape for _, shape in KINDS.values()]),
        legend=legend,
    )
    layers = [roof.encode(x=x("intensity"), y=y("gflops"))]
    for mine, colour in timed.whose(rows, settings):
        ours = colour != theme.MUTED
        mark = {"size": 60, "stroke": theme.PAPER, "strokeWidth": 0.8} if ours else {"size": 44, "strokeWidth": 1.3}
        layers.append(
            alt.Chart(drawn.filter(mine), **size)
            .mark_point(filled=ours, color=colour, opacity=1, **mark)
            .encode(x=x("intensity"), y=y("gflops"), shape=shape, tooltip=tooltip)
        )
    return alt.layer(*layers)


def said() -> pl.Expr:
    """The kind of a case in words."""
    return pl.col("kind").replace_strict({kind: words for kind, (words, _) in KINDS.items()})


def roof_of(rows: pl.DataFrame, domain: list[float]) -> pl.DataFrame:
    """The roof of one model's process: at the ends of the axis, and at the ridge where its two limits meet."""
    peak, bandwidth = rows["matrix_peak"].max() / 1e9, rows["read_bandwidth"].max() / 1e9
    at = sorted({domain[0], max(min(peak / bandwidth, domain[1]), domain[0]), domain[1]})
    return pl.DataFrame({"intensity": at, "gflops": [min(peak, bandwidth * place) for place in at]})
