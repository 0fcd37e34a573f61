"""Matrix products. A linear cell is anything that maps (..., in) to (..., out) when called."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Linear(NamedTuple):
    """y = x W^T + b, for any dtype and device, with gradients."""

    weight: Tensor  # (out, in)
    bias: Tensor | None = None  # (out)

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class BlockedLinear(NamedTuple):
    """The same product on float32 CPU weights that oneDNN has laid out in blocks, once and for all.

    A plain product re-packs its weights at every call, which costs as much as the arithmetic when there are few
    tokens. For a single token, as in decoding, the plain product is the faster of the two. Inference only.
    """

    weight: Tensor  # (out, in), in oneDNN's own layout
    bias: Tensor | None = None  # (out)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


TYPICAL_TOKENS = 32  # the number of rows that the blocks are chosen for; any number works


def blocked(linear: Linear) -> Linear | BlockedLinear:
    """The blocked form of a float32 CPU linear where this torch has oneDNN; the same linear anywhere else."""
    weight, bias = linear
    fits = weight.dtype == torch.float32 and weight.device.type == "cpu" and torch.backends.mkldnn.is_available()
    if not fits:
        return linear
    return BlockedLinear(torch.ops.mkldnn._reorder_linear_weight(weight.detach(), TYPICAL_TOKENS), bias)
