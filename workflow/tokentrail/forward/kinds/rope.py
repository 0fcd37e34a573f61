"""Rotary position, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Llama3Scaling:
    """Stretching of the low rotary frequencies (Llama 3.1)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_positions: int


@dataclass(frozen=True)
class Rope:
    theta: float
    scaling: Llama3Scaling | None = None
