"""Percentile intervals by resampling units with replacement. Efron 1979."""

from __future__ import annotations

import numpy as np


def interval(units: np.ndarray, samples: int, level: float, seed: int) -> tuple[float, float]:
    """The percentile interval of the mean of `units` (n): resampled `samples` times with the given seed."""
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(units), size=(samples, len(units)))
    means = units[draws].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
