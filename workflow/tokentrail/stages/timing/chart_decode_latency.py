"""The time of a decode step by the length of the context."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.stages.timing import timed

TABLES = ("timing_summary",)
CAPTION = """
The time of one decode step of one row, by the number of tokens that the cache holds before it. A full mark is the
median over the rounds of the first block, the band and the bars are its interval, and a hollow mark is the median of
the second block, which repeats the first at the end: where the two marks part, the machine drifted. Each model has an
axis of its own.

It does not show where the time goes. With a longer context a step reads more keys and values, but a band that is wide
beside the rise leaves open how much of it is that. The times are those of one machine, and of this run.
"""
VALUE = {
    "middle": pl.col("median_ms"),
    "low": pl.col("low_ms"),
    "high": pl.col("high_ms"),
    "repeat": pl.col("repeat_median_ms"),
}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    summary, title = tables["timing_summary"], "What does a longer context cost?"
    if not theme.drawn(timed.measured(summary, "decode"), settings):
        return theme.finish(theme.nothing(timed.NOTHING), title, CAPTION, settings)
    axes = ("tokens in the cache (log)", "ms a step")
    told = timed.told(summary, "decode", "Median time of a decode step in ms", settings)
    return theme.finish(timed.by_context(summary, "decode", VALUE, axes, settings), title, CAPTION, settings, told)
