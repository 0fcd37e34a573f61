"""How far a matrix moves, and whether it stood on the codes before: told from the weights, whatever stored them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokentrail.quantize.moved import Moved, moved
from tokentrail.quantize.quantizer import dequantize, quantize
from tokentrail.quantize.scheme import Scheme

FOUR = Scheme(4, 32, scales="bfloat16")
FOUR_CUT = Scheme(4, 32, divisor="half_range")
FOUR_MIDDLE = Scheme(4, 32, symmetric=False, scales="bfloat16")
EIGHT = Scheme(8, 32)
EIGHT_MIDDLE = Scheme(8, 32, symmetric=False)


def rounded(weights: torch.Tensor, scheme: Scheme) -> Moved:
    q = quantize(weights, scheme)
    return moved(weights, dequantize(q), q.scales)


def stored(dtype: str) -> torch.Tensor:
    """Normal weights (64, 256) as they come out of a GGUF that stores them so."""
    from gguf import GGMLQuantizationType, dequantize, quantize

    kind = GGMLQuantizationType[dtype]
    weights = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
    return torch.from_numpy(np.asarray(dequantize(quantize(weights, kind), kind), dtype=np.float32))


@pytest.mark.parametrize(
    ("dtype", "on_the_codes_of"),
    [
        ("Q4_0", [FOUR_CUT]),
        ("Q4_1", [FOUR_MIDDLE, EIGHT_MIDDLE]),  # 255 steps are 17 to each of the 15
        ("Q8_0", [EIGHT]),
        ("F16", []),
        ("F32", []),
    ],
)
def test_weights_are_on_the_codes_of_the_schemes_that_make_their_format_again(dtype, on_the_codes_of):
    weights = stored(dtype)
    found = [s for s in (FOUR, FOUR_CUT, FOUR_MIDDLE, EIGHT, EIGHT_MIDDLE) if rounded(weights, s).on_codes]
    assert found == on_the_codes_of


def test_weights_between_codes_move_by_a_quarter_of_a_step():
    for scheme in (FOUR, FOUR_MIDDLE, EIGHT):
        change = rounded(stored("F32"), scheme)
        assert change.mean_abs_error / change.step == pytest.approx(
            0.25, rel=0.1
        )  # the largest of a group is on a code


def test_codes_that_are_far_apart_are_no_codes_that_weights_stood_on():
    """With one weight in a group a thousand times the others, all of these become 0: a small error only in steps."""
    weights = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))
    weights[:, 0] = 1000.0
    change = rounded(weights, Scheme(2, "channel"))
    assert change.mean_abs_error < 0.025 * min(change.step, change.std) and not change.on_codes


def test_the_numbers_are_the_definitions():
    before, after = torch.tensor([[0.0, 1.0], [2.0, 5.0]]), torch.tensor([[0.5, 1.0], [2.0, 4.0]])
    change = moved(before, after, torch.tensor([[0.25], [0.75]]))
    assert change == (4, 0.375, pytest.approx(np.std([0, 1, 2, 5])), 1.5, 0.5)
    assert change.relative_error == pytest.approx(0.375 / np.std([0, 1, 2, 5]))


def test_a_rounding_of_another_kind_must_move_nothing():
    exact = torch.tensor([[1.0, 0.5, -3.0, 0.0]])
    assert moved(exact, exact.bfloat16()).on_codes
    assert not moved(exact + 0.001, (exact + 0.001).bfloat16()).on_codes
