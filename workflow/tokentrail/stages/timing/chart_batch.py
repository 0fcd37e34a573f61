"""The price and the wait: throughput against the latency of a step, by the number of rows."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.colour import readable
from tokentrail.charts.result import extremes
from tokentrail.charts.select import OURS
from tokentrail.stages.timing import timed

TABLES = ("timing_summary", "cost")
CAPTION = """
Decoding several rows at once. To the right, how long every row waits for its next token; upwards, how many tokens all
rows get in a second, both on logarithmic axes. The marks are numbers of rows, joined in their order, and beside each
of ours stands what a million tokens cost in machine time, at the price and the highest occupancy that the
configuration assumes. Bars are the interval of the median wait over the rounds. A path that rises steeply gives many
tokens for little waiting.

It does not show what a service costs: requests that arrive unevenly, prompts that must be read first, power, and
everything else that a price has beside the machine are left out. All rows are equally long here, as they seldom are.
"""

LABEL = 92  # pixels that the longest label takes


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    summary, title = tables["timing_summary"], "The price and the wait"
    rows = timed.measured(summary, "batch")
    if not theme.drawn(rows, settings):
        return theme.finish(theme.nothing(timed.NOTHING), title, CAPTION, settings)
    cost = tables["cost"].filter(pl.col("kind") == "batch")
    cheapest = cost.filter(pl.col("occupancy") == pl.col("occupancy").max().over("model"))
    rows = rows.join(
        cheapest.select("model", "context", "batch", "dollars_per_million_tokens", implementation=pl.lit(OURS)),
        on=["model", "context", "batch", "implementation"],
        how="left",
        maintain_order="left",
    )
    body = timed.panels(summary, rows, "batch", settings, lambda here, width: panel(here, settings, width))
    told = extremes(
        rows.filter(pl.col("implementation") == OURS),
        "median_ms",
        "Median time of a decode step in ms",
        settings,
        {"context": "context", "batch": "rows"},
    )
    return theme.finish(body, title, CAPTION, settings, told)


def panel(rows: pl.DataFrame, settings: dict[str, Any], width: int) -> alt.LayerChart:
    drawn = rows.select(
        "implementation",
        "batch",
        *(pl.col(name).round_sig_figs(4) for name in ("median_ms", "low_ms", "high_ms", "tokens_per_second")),
        label=pl.struct("batch", "dollars_per_million_tokens").map_elements(label, pl.String),
    )
    fastest, slowest = drawn["low_ms"].min(), drawn["high_ms"].max()
    # Labels stand to the left of their marks: the axis leaves them LABEL pixels before the first.
    room = (1.1 * slowest / fastest) ** (LABEL / (width - LABEL))
    x_domain = [fastest / room, slowest * 1.1]
    y_domain = [drawn["tokens_per_second"].min() / 1.4, drawn["tokens_per_second"].max() * 1.4]
    y = alt.Y(
        "tokens_per_second:Q",
        scale=alt.Scale(type="log", domain=y_domain, nice=False),
        axis=alt.Axis(title="tokens a second, all rows (log)", values=theme.decades(*y_domain), format=",~g"),
    )

    def x(column: str) -> alt.X:
        axis = alt.Axis(title="ms that every row waits (log)", tickCount=4, format=",~g", labelOverlap=True)
        return alt.X(f"{column}:Q", scale=alt.Scale(type="log", domain=x_domain, nice=False), axis=axis)

    tooltip = [f"{name}:Q" if name in drawn.columns[1:-1] else f"{name}:N" for name in drawn.columns]
    layers = []
    for mine, colour in timed.whose(rows, settings):
        base = alt.Chart(drawn.filter(mine), width=width, height=190).encode(y=y)
        layers += [
            base.mark_rule(strokeWidth=1.2, color=colour).encode(x=x("low_ms"), x2="high_ms:Q"),
            base.mark_line(strokeWidth=1.8, color=colour).encode(
                x=x("median_ms"), order="batch:Q", strokeDash=timed.dash()
            ),
            base.mark_point(size=46, filled=True, opacity=1, color=colour).encode(x=x("median_ms"), tooltip=tooltip),
            base.mark_text(align="right", dx=-8, dy=-8, fontSize=11, color=readable(colour)).encode(
                x=x("median_ms"), text="label:N"
            ),
        ]
    return alt.layer(*layers)


def label(row: dict[str, Any]) -> str:
    """`8 rows, $0.61`; nothing where there is no price."""
    price = row["dollars_per_million_tokens"]
    return "" if price is None else f"{row['batch']} {'row' if row['batch'] == 1 else 'rows'}, ${text.size(price)}"
