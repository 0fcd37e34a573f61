"""Inside the FFN: what its second matrix reads, at every layer and position."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch

from tokentrail import tables
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import Record
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded

NEAR_ZERO = 0.01


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `mlp`: GELU's output, or the gate's SiLU times the other half, as the cell has it."""
    frames = []
    prompts, refused = encoded(loaded, settings)
    for prompt in prompts:
        record = Record("ffn_act", keep=lambda x: x[0])
        forward(loaded.model, prompt.ids, tap=record)
        for (_, layer), x in record.seen.items():  # (tokens, ffn width)
            shares = {
                "position": range(x.shape[0]),
                "near_zero_fraction": (x.abs() < NEAR_ZERO).double().mean(dim=1).tolist(),
                "negative_fraction": (x < 0).double().mean(dim=1).tolist(),
                "max": x.max(dim=1).values.double().tolist(),
                "min": x.min(dim=1).values.double().tolist(),
            }
            same = {"prompt": prompt.name, "layer": layer, "width": x.shape[1]}
            frames.append(pl.DataFrame(shares).with_columns(**{key: pl.lit(value) for key, value in same.items()}))
    return tables.frame("mlp", frames, refused, model=settings["model"])
