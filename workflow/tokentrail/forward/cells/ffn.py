"""The feed-forward cells: each token alone is widened, passed through a nonlinearity and narrowed again."""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.taps import Tap


class FfnWeights(NamedTuple):
    up: Linear  # gelu: (ffn width, width); swiglu: (2 * ffn width, width), gate rows first
    down: Linear  # (width, ffn width)


def shapes(spec: specs.Ffn, width: int) -> dict[str, tuple[int, ...]]:
    rows = spec.width * (2 if spec.kind == "swiglu" else 1)
    out = {"up.weight": (rows, width), "down.weight": (width, spec.width)}
    return out | ({"up.bias": (rows,), "down.bias": (width,)} if spec.bias else {})


def ffn(x: Tensor, weights: FfnWeights, spec: specs.Ffn, layer: int, tap: Tap) -> Tensor:
    """x (rows, tokens, width) -> (rows, tokens, width)."""
    h = weights.up(x)  # (rows, tokens, rows of up)
    if spec.kind == "swiglu":  # Shazeer 2020
        gate, up = h.chunk(2, dim=-1)  # each (rows, tokens, ffn width)
        h = F.silu(gate).mul_(up)
    else:
        h = F.gelu(h, approximate="tanh")  # Hendrycks and Gimpel 2016, the tanh form
    return weights.down(tap("ffn_act", layer, h))
