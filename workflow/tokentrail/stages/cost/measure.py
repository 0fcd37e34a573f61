"""The price and the wait: machine time for a million tokens, at a price and an occupancy that are assumptions."""

from __future__ import annotations

from typing import Any

import polars as pl


def measure(summary: pl.DataFrame, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `cost`, from `timing_summary`: what was timed of ours, at each occupancy."""
    timed = summary.filter(pl.col("implementation") == "tokentrail", pl.col("status") == "ok")
    occupancy = pl.DataFrame({"occupancy": settings["occupancy"]}, schema={"occupancy": pl.Float64})
    paid = 3600 * pl.col("occupancy") * pl.col("tokens_per_second")  # tokens that an hour's price buys
    return timed.join(occupancy, how="cross", maintain_order="left_right").select(
        "kind",
        "context",
        "batch",
        "occupancy",
        "tokens_per_second",
        model=pl.lit(settings["model"]),
        price_per_hour=pl.lit(settings["price_per_hour"], dtype=pl.Float64),
        dollars_per_million_tokens=1e6 * settings["price_per_hour"] / paid,
        step_latency_ms="median_ms",
    )
