"""The whole distribution of the last position, not the top of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch

from tokentrail.forward.frame import forward, last
from tokentrail.measure.answers import entropy_bits, log_probabilities
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `distribution`."""
    rows = []
    for prompt in encoded(loaded, settings):
        log_p = log_probabilities(forward(loaded.model, prompt.ids, read=last(prompt.ids))[0, 0])
        mass = log_p.exp().sort(descending=True).values.cumsum(0)  # (vocabulary)
        entropy = entropy_bits(log_p)
        rows.append(
            {
                "prompt": prompt.name,
                "entropy_bits": entropy,
                "effective_choices": 2.0**entropy,
                "top5_mass": mass[:5][-1].item(),
                "tokens_for_90_percent": int((mass < 0.9).sum()) + 1,
                "vocabulary": log_p.numel(),
            }
        )
    return pl.DataFrame(rows).with_columns(model=pl.lit(settings["model"]))
