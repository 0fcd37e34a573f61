"""Every attention head's last row: where it looks, how sharply, and how much of it rests on the first token."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import torch

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Record
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `attention`; no rows for a model without attention layers."""
    rows = []
    prompts, refused = encoded(loaded, settings)
    for prompt in prompts:
        record = Record("pattern", keep=lambda x: x[0, :, -1].double())
        forward(loaded.model, prompt.ids, tap=record, read=last(prompt.ids))
        for (_, layer), last_rows in record.seen.items():  # (heads, tokens)
            if layer not in specs.layers_with(loaded.model.spec, "attention"):
                continue
            entropy = -torch.special.xlogy(last_rows, last_rows).sum(dim=-1) / math.log(2)
            for head, weights in enumerate(last_rows):
                largest = int(weights.argmax())
                rows.append(
                    {
                        "prompt": prompt.name,
                        "layer": layer,
                        "head": head,
                        "argmax_position": largest,
                        "argmax_token": loaded.tokenizer.token(int(prompt.ids[0, largest])),
                        "argmax_weight": weights[largest].item(),
                        "entropy_bits": entropy[head].item(),
                        "weight_on_first": weights[0].item(),
                    }
                )
    return tables.frame("attention", rows, refused, model=settings["model"])
