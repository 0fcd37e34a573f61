"""What rounding does to the weights of a case as a whole, and in which format they were stored before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any

import torch

from tokentrail.forward.families import read_spec, recipes
from tokentrail.quantize.moved import Moved, moved
from tokentrail.quantize.parts import HEAD, TOKENS, quantizable
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import named_tensors


def stored_dtypes(checkpoint: Checkpoint, tensors: Iterable[str] | None = None) -> str:
    """The number formats that the source stores these tensors in, most weights first; of all matrices by default.

    `tensors` are our names (see `forward.assemble`).
    """
    spec = read_spec(checkpoint.config)
    made_from, _ = recipes(spec, set(checkpoint.tensor_names()))
    names = {
        TOKENS if name == HEAD and spec.tied else name for name in (quantizable(spec) if tensors is None else tensors)
    }
    weights: Counter[str] = Counter()
    for part in sorted({part for name in names for part in made_from[name].parts}):
        weights[checkpoint.stored(part)[0]] += prod(checkpoint.shape(part))
    return ", ".join(sorted(weights, key=lambda dtype: (-weights[dtype], dtype)))


def in_bfloat16(checkpoint: Checkpoint) -> list[Moved]:
    """How far each matrix moves when it is rounded to bfloat16; a tied table once."""
    spec, tensor = named_tensors(checkpoint)
    names = [name for name in quantizable(spec) if not (name == HEAD and spec.tied)]
    return [moved(weights, weights.to(torch.bfloat16)) for weights in map(tensor, names)]


def together(matrices: Iterable[Moved]) -> dict[str, Any]:
    """The mean error over all weights, and the share of them in matrices that stood on the codes before."""
    matrices = list(matrices)
    weights = sum(each.weights for each in matrices)
    return {
        "weight_error": sum(each.weights * each.relative_error for each in matrices) / weights,
        "on_codes": sum(each.weights for each in matrices if each.on_codes) / weights,
    }
