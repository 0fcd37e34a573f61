"""What the gate judges: ours against transformers in float32, and both against our own float64 pass."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward.frame import forward
from tokentrail.measure.prompts import encoded
from tokentrail.measure.reference import open_reference, reference_logits
from tokentrail.weights.load import Loaded, load_model


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `parity`: every position of every prompt that the model can be asked."""
    prompts, refused = encoded(loaded, settings)
    reference = open_reference(loaded.checkpoint, loaded.device)
    truth = load_model(loaded.checkpoint, torch.float64, loaded.device)
    frames = [
        compared(
            ours=forward(loaded.model, prompt.ids)[0],
            reference=reference_logits(reference, prompt.ids)[0],
            truth=forward(truth, prompt.ids)[0],
        ).with_columns(prompt=pl.lit(prompt.name))
        for prompt in prompts
    ]
    return tables.frame("parity", frames, refused, model=settings["model"], tolerance=float(settings["tolerance"]))


def compared(ours: Tensor, reference: Tensor, truth: Tensor) -> pl.DataFrame:
    """Logits (tokens, vocabulary) of three passes -> one row a position."""
    apart = (ours.double() - reference.double()).abs()
    return pl.DataFrame(
        {
            "position": range(ours.shape[0]),
            "max_abs_logit_diff": apart.amax(dim=-1).tolist(),
            "mean_abs_logit_diff": apart.mean(dim=-1).tolist(),
            "top1_agrees": (ours.argmax(dim=-1) == reference.argmax(dim=-1)).tolist(),
            "max_abs_error_ours": (ours - truth).abs().amax(dim=-1).tolist(),
            "max_abs_error_reference": (reference - truth).abs().amax(dim=-1).tolist(),
            "max_abs_logit": truth.abs().amax(dim=-1).tolist(),
        }
    )
