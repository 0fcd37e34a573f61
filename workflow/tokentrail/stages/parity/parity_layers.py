"""Where two passes part: the largest difference at each site that both can show."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import Tap
from tokentrail.measure.prompts import encoded
from tokentrail.measure.reference import open_reference, reference_sites
from tokentrail.stages.parity.parity import check_finite
from tokentrail.weights.load import Loaded


def keep(seen: dict[tuple[str, int], Tensor], site: str, layer: int, x: Tensor) -> None:
    seen[site, layer] = x


class Compare(Tap):
    """Holds our tensors against the reference's as they come by, in the order of our pass."""

    def __init__(self, reference: dict[tuple[str, int], Tensor]):
        self.reference = reference
        self.rows: list[dict[str, Any]] = []

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        theirs = self.reference.pop((site, layer), None)
        if theirs is not None:
            apart, size = (tensor - theirs).abs().max().item(), theirs.abs().max().item()
            self.rows.append({"layer": layer, "site": site, "max_abs_diff": apart, "max_abs_value": size})
        return tensor


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `parity_layers`. Raises NotFiniteError, naming layer and site, if a pass overflows float32."""
    prompts, refused = encoded(loaded, settings)
    reference = open_reference(loaded.checkpoint, loaded.device)
    frames = []
    for prompt in prompts:
        seen: dict[tuple[str, int], Tensor] = {}
        reference_sites(reference, loaded.model.spec, prompt.ids, partial(keep, seen))
        compare = Compare(seen)
        forward(loaded.model, prompt.ids, tap=compare)
        if not all(math.isfinite(row["max_abs_diff"]) for row in compare.rows):
            check_finite(loaded.model, reference, prompt)
        frames.append(pl.DataFrame(compare.rows).with_columns(prompt=pl.lit(prompt.name)))
    return tables.frame("parity_layers", frames, refused, model=settings["model"])
