"""The feed-forward cell: each token alone is widened, passed through a nonlinearity and narrowed again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.place import Place
from tokentrail.forward.taps import Tap

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # Hendrycks and Gimpel 2016, the tanh form
    "silu": F.silu,
}


class FfnWeights(NamedTuple):
    up: Linear  # (ffn width, width); gated: (2 * ffn width, width), gate rows first
    down: Linear  # (width, ffn width)


def assembled(spec: specs.Ffn, tensor: Callable[[str], Tensor | None], linear: Callable[[str], Linear]) -> FfnWeights:
    """The weights, of the cell's tensors and matrices by name."""
    return FfnWeights(up=linear("up"), down=linear("down"))


def ffn(
    x: Tensor, weights: FfnWeights, spec: specs.Ffn, state: None, place: Place, layer: int, tap: Tap
) -> tuple[Tensor, None]:
    """x (rows, tokens, width) -> (rows, tokens, width); nothing is kept for the next call."""
    h = tap("ffn_up", layer, weights.up(x))  # (rows, tokens, rows of up)
    activation = ACTIVATIONS[spec.activation]
    if spec.gated:  # Shazeer 2020
        gate, up = h.chunk(2, dim=-1)  # each (rows, tokens, ffn width)
        h = activation(gate).mul_(up)
    else:
        h = activation(h)
    return weights.down(tap("ffn_act", layer, h)), None
