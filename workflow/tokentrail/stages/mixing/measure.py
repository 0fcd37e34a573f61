"""Who takes how much from whom: attention weights, and Mamba2 unrolled to the same shape."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Record
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `mixing`: every head's weights on and below the diagonal."""
    frames = []
    prompts, refused = encoded(loaded, settings)
    for prompt in prompts:
        record = Record("pattern", keep=lambda x: x[0])
        forward(loaded.model, prompt.ids, tap=record, read=last(prompt.ids))
        for (_, layer), pattern in record.seen.items():
            mixer = specs.kind_of(loaded.model.spec.layers[layer].mixer)
            same = {"prompt": prompt.name, "layer": layer, "mixer": mixer}
            frames.append(lower_triangle(pattern).with_columns(**{k: pl.lit(v) for k, v in same.items()}))
    return tables.frame("mixing", frames, refused, model=settings["model"])


def lower_triangle(pattern: Tensor) -> pl.DataFrame:
    """pattern (heads, tokens, tokens) -> one row for each head, query and key up to the query."""
    heads, tokens, _ = pattern.shape
    query, key = torch.tril_indices(tokens, tokens)
    return pl.DataFrame(
        {
            "head": torch.arange(heads).repeat_interleave(len(query)).numpy(),
            "query_position": query.repeat(heads).numpy(),
            "key_position": key.repeat(heads).numpy(),
            "weight": pattern[:, query, key].flatten().double().cpu().numpy(),
        }
    )
