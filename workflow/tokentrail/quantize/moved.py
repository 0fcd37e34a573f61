"""How far a matrix moves when it is rounded, and whether it stood on the codes before."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

FEW = 0.025  # a tenth of what weights that lie anywhere between two codes move by on average: a quarter of a step


class Moved(NamedTuple):
    """A matrix before and after, in numbers."""

    weights: int
    mean_abs_error: float
    """Mean |read back - original|."""
    std: float
    """Standard deviation of the original weights."""
    spread: float
    """Mean distance of the original weights from their mean, which a few outliers do not decide."""
    step: float
    """Mean distance of two codes; 0 if the rounding is of another kind."""

    @property
    def relative_error(self) -> float:
        """The mean error in standard deviations."""
        return self.mean_abs_error / self.std if self.std else 0.0

    @property
    def on_codes(self) -> bool:
        """Whether the weights stood on the scheme's codes before, as those of a source do that was rounded alike.

        The error must be small beside the step, and beside the spread of the weights as well: with a step far above
        nearly all of them, these read back as the same value, and the error is small beside the step alone.
        """
        return self.mean_abs_error <= FEW * min(self.step, self.spread)


def moved(original: Tensor, read_back: Tensor, scales: Tensor | None = None) -> Moved:
    """The two matrices (out, in), and the scales if there are any."""
    original = original.float()
    return Moved(
        weights=original.numel(),
        mean_abs_error=(read_back.float() - original).abs().mean().item(),
        std=original.std(correction=0).item(),
        spread=(original - original.mean()).abs().mean().item(),
        step=0.0 if scales is None else scales.float().mean().item(),
    )
