"""The name swaps averaged, with intervals over names."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.measure.bootstrap import interval

QUANTITIES = ("probability", "name_nll", "top1_rate")


def measure(swaps: pl.DataFrame, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `name_swaps_summary` from table `name_swaps`.

    The unit that is resampled is the name with all its templates, because one name's rows are not independent.
    """
    rated = swaps.with_columns(top1_rate=(pl.col("rank") == 0).cast(pl.Float64))
    every = rated.with_columns(template=pl.lit("all"))
    groups = pl.concat([rated, every]).group_by("set", "template", maintain_order=True)
    rows = [
        summary(group, quantity, settings["bootstrap"]) | {"set": key[0], "template": key[1]}
        for key, group in groups
        for quantity in QUANTITIES
    ]
    return tables.frame("name_swaps_summary", rows, model=settings["model"])


def summary(group: pl.DataFrame, quantity: str, bootstrap: dict[str, Any]) -> dict[str, Any]:
    by_name = group.group_by("name", maintain_order=True).agg(pl.col(quantity).mean())[quantity].to_numpy()
    low, high = interval(by_name, **bootstrap)
    return {
        "rows": group.height,
        "names": len(by_name),
        "quantity": quantity,
        "mean": float(by_name.mean()),
        "low": low,
        "high": high,
        "level": bootstrap["level"],
    }
