"""A scheme: everything that must be said to turn a matrix into codes and scales, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

SCALE_DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


@dataclass(frozen=True)
class Scheme:
    """How a matrix is quantized. The defaults are the choices that are printed most often."""

    bits: int
    """Bits of a code, 2 to 8."""
    group_size: int | Literal["channel"]
    """Weights that share a scale; `channel`: a whole line."""
    symmetric: bool = True
    """Whether code 0 means 0. If not, each group stores its middle beside its scale."""
    divisor: Literal["largest_code", "half_range"] = "largest_code"
    """What the largest weight of a symmetric group is divided by: 2^(bits-1) - 1, or 2^(bits-1), where it is cut."""
    grouping: Literal["input", "output", "flattened"] = "input"
    """Neighbours are weights of one output, of one input, or follow each other as the checkpoint stores them."""
    rest: Literal["short", "refuse"] = "short"
    """A line that groups do not divide ends in a shorter group, or is refused."""
    scale: Literal["absmax", "search"] = "absmax"
    """The scale covers the group's largest weight, or has the least squared error of some that cover less."""
    scales: Literal["float16", "bfloat16", "float32"] = "float16"
    """Number format of scales and middles; codes are chosen for the scale as it is stored."""
    outliers: float = 0.0
    """Share of a matrix's weights, the largest, that is kept apart in the format of the scales."""

    @property
    def lowest(self) -> int:
        return -(2 ** (self.bits - 1))

    @property
    def highest(self) -> int:
        return 2 ** (self.bits - 1) - 1

    @property
    def steps(self) -> int:
        """What the largest weight of a symmetric group is divided by."""
        return self.highest if self.divisor == "largest_code" else -self.lowest

    @property
    def scale_dtype(self) -> torch.dtype:
        return SCALE_DTYPES[self.scales]
