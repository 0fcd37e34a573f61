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
    tokens. For one or two rows, as in decoding, it does not, and for very many the packing is soon paid: there the
    plain product is the faster of the two, and is taken if the plain weights were kept. Inference only.
    """

    weight: Tensor  # (out, in), in oneDNN's own layout
    bias: Tensor | None = None  # (out)
    plain: Tensor | None = None  # (out, in), the same numbers as they were

    def __call__(self, x: Tensor) -> Tensor:
        if self.plain is not None and not worth_blocking(x.numel() // x.shape[-1]):
            return F.linear(x, self.plain, self.bias)
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


FEW_ROWS, MANY_ROWS = 2, 1024  # up to so few rows, and from so many on, the plain product is the faster one
SMALL = 1 << 18  # a matrix of fewer numbers is not blocked: a call of oneDNN costs more than it saves
TYPICAL_ROWS = 512  # the number of rows that the blocks are chosen for; any number works


def worth_blocking(rows: int) -> bool:
    """Whether products of so many rows are faster on blocked weights."""
    return FEW_ROWS < rows < MANY_ROWS


def blocked(linear: Linear, keep: bool = False) -> Linear | BlockedLinear:
    """The blocked form of a large float32 CPU linear where this torch has oneDNN; the same linear anywhere else.

    `keep` holds on to the plain weights beside the blocked ones.
    """
    weight, bias = linear
    fits = weight.dtype == torch.float32 and weight.device.type == "cpu" and torch.backends.mkldnn.is_available()
    if not fits or weight.numel() < SMALL:
        return linear
    inner = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), TYPICAL_ROWS)
    return BlockedLinear(inner, bias, weight if keep else None)
