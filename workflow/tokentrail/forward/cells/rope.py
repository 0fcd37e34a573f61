"""Rotary position embedding: queries and keys turn by an angle that grows with their position."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tokentrail.forward import spec as specs


def frequencies(spec: specs.Rope, channels: int) -> Tensor:
    """Angle per position for each pair of rotated channels: (channels / 2), float64. Su et al. 2021, section 3.2.2.

    With Llama-3 scaling (transformers, modeling_rope_utils.py), wavelengths above the trained context divided by
    `low_freq_factor` are stretched by `factor`, those below the context divided by `high_freq_factor` are kept,
    and those between are blended linearly in frequency.
    """
    exponents = torch.arange(0, channels, 2, dtype=torch.float64) / channels
    frequency = spec.theta**-exponents
    if spec.scaling is None:
        return frequency
    s = spec.scaling
    turns = s.original_positions * frequency / (2 * math.pi)  # full turns within the original context
    kept = ((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)).clamp(0, 1)
    return frequency * (kept + (1 - kept) / s.factor)


def rotation(positions: Tensor, spec: specs.Rope, channels: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos (rows, 1, tokens, channels) and sin (rows, 1, tokens, channels / 2) for positions (rows, tokens).

    The cosine stands there for both channels of each pair. Angles are taken in float64.
    """
    angle = (positions.double()[..., None] * frequencies(spec, channels).to(positions.device))[:, None]
    cos, sin = angle.cos(), angle.sin()  # (rows, 1, tokens, channels / 2)
    return torch.cat([cos, cos], dim=-1).to(dtype), sin.to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x (rows, heads, tokens, head_dim) with its first channels turned, as many as cos has; the others are kept.

    Of those that turn, channel i pairs with channel i + channels / 2: halves, not neighbours.
    """
    channels = cos.shape[-1]
    if channels < x.shape[-1]:
        return torch.cat([rotate(x[..., :channels], cos, sin), x[..., channels:]], dim=-1)
    half = channels // 2
    a, b = x.chunk(2, dim=-1)
    turned = x * cos
    turned[..., :half].addcmul_(b, sin, value=-1)
    turned[..., half:].addcmul_(a, sin)
    return turned
