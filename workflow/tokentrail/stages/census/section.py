"""Where the parameters are, by family."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.charts.select import TENSOR_GROUPS


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Families of each model with their counts."""
    families = (
        tables["census"]
        .group_by("model", "family", maintain_order=True)
        .agg(
            pl.col("counted_parameters", "stored_bytes").sum(),
            pl.col("family_share").first(),
            formats=pl.col("stored_dtype").unique(maintain_order=True).str.join(", "),
            tensors=pl.len(),
        )
    )
    shown = {family: place for place, family in enumerate(TENSOR_GROUPS)}
    return [
        row | {"name": TENSOR_GROUPS[row["family"]]}
        for row in sorted(families.to_dicts(), key=lambda row: shown[row["family"]])
    ]
