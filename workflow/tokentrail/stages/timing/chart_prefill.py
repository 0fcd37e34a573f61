"""The rate of a prefill by its length."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import theme
from tokentrail.stages.timing import timed

TABLES = ("timing_summary",)
CAPTION = """
How many tokens of an input are read in a second when all of them are given at once, by the number of tokens. A full
mark is at the median time of the first block's rounds, the band and the bars are its interval, and a hollow mark is at
the median of the second block. A few tokens cannot use the processor well, because every weight is
fetched for them alone; many tokens share each fetch, until attention, which grows with the square of the length, or
the processor's arithmetic becomes the limit.

It does not show which of these the limit is; the roofline says how near each case comes to it. The times are those of
one machine, and of this run.
"""


def rate(column: str) -> pl.Expr:
    """Tokens a second at a time in ms."""
    return 1000 * pl.col("context") * pl.col("batch") / pl.col(column)


VALUE = {
    "middle": rate("median_ms"),
    "low": rate("high_ms"),
    "high": rate("low_ms"),
    "repeat": rate("repeat_median_ms"),
}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    summary, title = tables["timing_summary"], "How fast is an input read?"
    if not theme.drawn(timed.measured(summary, "prefill"), settings):
        return theme.finish(theme.nothing(timed.NOTHING), title, CAPTION, settings)
    axes = ("tokens of the input (log)", "tokens a second")
    told = timed.told(summary, "prefill", "Median time of a prefill in ms", settings)
    return theme.finish(timed.by_context(summary, "prefill", VALUE, axes, settings), title, CAPTION, settings, told)
