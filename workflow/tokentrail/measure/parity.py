"""The gate: ours against transformers in float32, and both against our own float64 pass."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail.errors import ParityError
from tokentrail.forward.frame import forward
from tokentrail.measure.prompts import encoded
from tokentrail.measure.reference import open_reference, reference_logits
from tokentrail.weights.load import Loaded, load_model

LOST = 1e-4  # of a site's largest value: float32 rounding stays a hundred times below, a fault lies above


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `parity`: every position of every prompt."""
    prompts = encoded(loaded, settings)
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
    return pl.concat(frames).with_columns(
        model=pl.lit(settings["model"]), tolerance=pl.lit(settings["tolerance"], dtype=pl.Float64)
    )


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


def gate(parity: pl.DataFrame, layers: pl.DataFrame, model: str) -> str:
    """A sentence that says by how much the model passed.

    Raises ParityError, naming the first layer and site that differ, if any logit differs by more than the
    tolerance.
    """
    worst = parity.sort("max_abs_logit_diff", descending=True, maintain_order=True).row(0, named=True)
    size, tolerance = worst["max_abs_logit_diff"], worst["tolerance"]
    if size <= tolerance:
        return f"{model}: largest logit difference {size:.3g}, tolerance {tolerance:g}, over {parity.height} positions"
    where = first_difference(layers)
    raise ParityError(
        f"{model} fails the parity gate: a logit of prompt {worst['prompt']} at position {worst['position']} differs "
        f"from transformers by {size:.3g}, above stages.parity.tolerance {tolerance:g}; {where}; "
        f"its later stages do not run"
    )


def first_difference(layers: pl.DataFrame) -> str:
    """The first site, in the order of the pass, where the passes part by more than rounding."""
    share = pl.col("max_abs_diff") / pl.col("max_abs_value").clip(lower_bound=1e-30)
    shares = layers.with_columns(share=share)
    lost = shares.filter(pl.col("share") > LOST)
    if not lost.is_empty():
        first = lost.row(0, named=True)
        return f"the first difference is at layer {first['layer']}, site {first['site']}"
    most = shares.sort("share", descending=True, maintain_order=True).row(0, named=True)
    return f"no single site parts by more than rounding, the most is at layer {most['layer']}, site {most['site']}"
