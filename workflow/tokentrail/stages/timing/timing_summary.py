"""Times as medians with percentiles, beside the limits that the same process measured."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.measure.median import Median, median_of

CASE = ("implementation", "kind", "context", "batch")
KINDS = pl.Enum(["decode", "batch", "prefill"])
INTERVAL = pl.Struct(dict.fromkeys(Median._fields, pl.Float64))
SAME = ("operations", "parameter_bytes", "least_bytes", "threads", "status", "reason")


def measure(timing: pl.DataFrame, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `timing_summary`, from `timing`: medians over the first block, and the second beside them."""
    limits = timing.filter(pl.col("implementation") == "machine")
    peak = best(limits, "matrix_peak", "operations")
    bandwidth = best(limits, "read_bandwidth", "least_bytes")
    first, repeat = pl.col("block") == 0, pl.col("block") == 1
    ms = 1000 * pl.col("seconds") / pl.col("calls")
    tokens = pl.when(pl.col("kind") == "prefill").then("context").otherwise(1) * pl.col("batch")
    return (
        timing.filter(pl.col("implementation") != "machine")
        .group_by(CASE, maintain_order=True)
        .agg(
            *(pl.col(column).first() for column in SAME),
            rounds=(first & pl.col("seconds").is_not_null()).sum(),
            first=ms.filter(first).drop_nulls(),
            p10_ms=ms.filter(first).quantile(0.1, "linear"),
            p90_ms=ms.filter(first).quantile(0.9, "linear"),
            min_ms=ms.filter(first).min(),
            max_ms=ms.filter(first).max(),
            repeat_median_ms=ms.filter(repeat).median(),
        )
        .with_columns(pl.col("first").map_elements(interval, INTERVAL))
        .unnest("first")
        .rename({"middle": "median_ms", "low": "low_ms", "high": "high_ms"})
        .with_columns(
            model=pl.lit(settings["model"]),
            drift=pl.col("repeat_median_ms") / pl.col("median_ms") - 1,
            tokens_per_second=1000 * tokens / pl.col("median_ms"),
            least_bytes_per_second=1000 * pl.col("least_bytes") / pl.col("median_ms"),
            achieved_flops=1000 * pl.col("operations") / pl.col("median_ms"),
            intensity=pl.col("operations") / pl.col("least_bytes"),
            matrix_peak=pl.lit(peak),
            read_bandwidth=pl.lit(bandwidth),
        )
        .with_columns(
            parameter_bytes_per_second=pl.col("tokens_per_second") * pl.col("parameter_bytes"),
            fraction_of_peak=pl.col("achieved_flops") / peak,
            fraction_of_bandwidth=pl.col("least_bytes_per_second") / bandwidth,
        )
        .drop("operations", "parameter_bytes", "least_bytes")
        .sort("implementation", pl.col("kind").cast(KINDS), "context", "batch")
    )


def interval(times: pl.Series) -> dict[str, float] | None:
    """`median_of` as a struct; nothing for a case that was not timed."""
    return median_of(times)._asdict() if len(times) else None


def best(limits: pl.DataFrame, kind: str, work: str) -> float:
    """The most `work` per second in any round of a limit."""
    return limits.filter(pl.col("kind") == kind).select((pl.col(work) / pl.col("seconds")).max()).item()
