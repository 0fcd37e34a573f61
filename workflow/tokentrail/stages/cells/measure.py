"""The model, cell by cell, from the Spec that the forward pass runs."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.forward.describe import describe
from tokentrail.forward.families import read_spec
from tokentrail.weights.checkpoint import Checkpoint


def measure(checkpoint: Checkpoint, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `cells`. Raises UnsupportedError for a config.json that no family reads."""
    return pl.DataFrame(describe(read_spec(checkpoint.config))).with_columns(model=pl.lit(settings["model"]))
