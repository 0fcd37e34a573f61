"""Bytes, answers and times of every scheme in one table."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.tables import schema_of

TIMES = (
    "resident_bytes",
    *(f"{kind}{end}_ms" for kind in ("decode", "prefill") for end in ("", "_low", "_high")),
)


def measure(quality: pl.DataFrame, timing: pl.DataFrame, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `quantization` from `quantization_quality` and `quantization_timing`.

    Only code that ran has times: simulated rows have none, nor have rows of a scheme that was not timed, or skipped.
    """
    ran = timing.select("scheme", "families", *TIMES).with_columns(ran=pl.lit(True))
    kept = quality.with_columns(ran=(pl.col("execution") != "simulated") & (pl.col("status") == "ok"))
    joined = kept.join(ran, on=["scheme", "families", "ran"], how="left", maintain_order="left")
    return joined.select(list(schema_of("quantization").column_names()))
