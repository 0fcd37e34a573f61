"""LayerNorm and RMSNorm."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tokentrail.forward import spec as specs


def wide(x: Tensor) -> Tensor:
    """Half-precision formats in float32; float32 and float64 as they are."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


class NormWeights(NamedTuple):
    weight: Tensor  # (width)
    bias: Tensor | None  # (width), LayerNorm only


def norm(x: Tensor, weights: NormWeights, spec: specs.Norm) -> Tensor:
    """x (..., width), rescaled over its last axis. Ba et al. 2016; Zhang and Sennrich 2019.

    RMSNorm multiplies by its weight after going back to the input's dtype, as the checkpoints were trained.
    """
    if spec.kind == "layernorm":
        return F.layer_norm(x, x.shape[-1:], weights.weight, weights.bias, spec.eps)
    return unit_rms(x, spec.eps).mul_(weights.weight)


def unit_rms(x: Tensor, eps: float) -> Tensor:
    """x (..., width) divided by its root mean square over the last axis, as a tensor of its own."""
    w = wide(x)
    return (w * w.square().mean(-1, keepdim=True).add_(eps).rsqrt_()).to(x.dtype)
