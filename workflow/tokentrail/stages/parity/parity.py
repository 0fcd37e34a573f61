"""What the gate judges: ours against transformers in float32, and both against our own float64 pass."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from tokentrail import tables
from tokentrail.errors import NotFiniteError
from tokentrail.forward.frame import Model, forward
from tokentrail.measure.overflow import Overflow, overflow
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.measure.reference import open_reference, reference_logits, reference_sites
from tokentrail.weights.load import Loaded, load_model


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `parity`: every position of every prompt that the model can be asked.

    Raises NotFiniteError, naming layer and site, if a pass overflows float32.
    """
    prompts, refused = encoded(loaded, settings)
    reference = open_reference(loaded.checkpoint, loaded.device)
    truth = load_model(loaded.checkpoint, torch.float64, loaded.device)
    frames = []
    for prompt in prompts:
        ours, theirs = forward(loaded.model, prompt.ids)[0], reference_logits(reference, prompt.ids)[0]
        if not (ours.isfinite().all() and theirs.isfinite().all()):
            check_finite(loaded.model, reference, prompt)
        of_prompt = compared(ours, theirs, truth=forward(truth, prompt.ids)[0])
        frames.append(of_prompt.with_columns(prompt=pl.lit(prompt.name)))
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


def check_finite(model: Model, reference: nn.Module, prompt: Encoded) -> None:
    """Raises NotFiniteError if our pass or transformers' holds NaN or infinity at any site of the prompt."""
    ours, theirs = overflow(model, prompt.ids), Overflow()
    reference_sites(reference, model.spec, prompt.ids, theirs.see)
    if ours.first is None and theirs.first is None:
        return
    if ours.first is not None and theirs.first is not None:
        said = f"the model's own pass overflows float32, {ours}, and in transformers as here, {theirs}"
    else:
        said = f"one of the two passes overflows float32: ours {ours}, transformers' {theirs}"
    raise NotFiniteError(
        f"on prompt {prompt.name}, {said}; leave out the prompt or the model, or choose weights that float32 is enough "
        "for"
    )
