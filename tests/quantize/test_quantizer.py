"""Codes, scales and bytes: against a slow quantizer written a second time, and by what must hold for any weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokentrail.errors import OutOfRangeError, QuantizationError
from tokentrail.quantize.packing import pack, unpack
from tokentrail.quantize.quantizer import dequantize, quantize
from tokentrail.quantize.scheme import Scheme


def weights(out: int, into: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(out, into, generator=torch.Generator().manual_seed(seed))


def slowly(matrix: np.ndarray, scheme: Scheme, turned: bool) -> np.ndarray:
    """The matrix read back, group by group, with nothing in common with the library but the definition."""
    out, into = matrix.shape
    cells = [(i, j) for i in range(out) for j in range(into)]
    if scheme.grouping == "output" or (scheme.grouping == "flattened" and turned):
        cells = [(i, j) for j in range(into) for i in range(out)]
    length = {"input": into, "output": out, "flattened": out * into}[scheme.grouping]
    size = length if scheme.group_size == "channel" else scheme.group_size
    found = np.empty_like(matrix)
    half = {"float16": np.float16, "float32": np.float32}[scheme.scales]
    low, high = -(2 ** (scheme.bits - 1)), 2 ** (scheme.bits - 1) - 1
    for line in range(0, len(cells), length):
        for start in range(line, line + length, size):
            places = tuple(zip(*cells[start : min(start + size, line + length)], strict=True))
            group = matrix[places]
            if scheme.symmetric:
                steps = high if scheme.divisor == "largest_code" else -low
                scale, middle = np.float32(half(np.abs(group).max() / np.float32(steps))), np.float32(0)
            else:
                scale = np.float32(half((group.max() - group.min()) / np.float32(high - low)))
                middle = np.float32(half((group.max() + group.min()) / np.float32(2) + scale / np.float32(2)))
            found[places] = middle  # where the step is 0, as of a rest of one weight, every code is 0
            if scale:
                codes = np.clip(np.rint((group - middle) / scale), low, high).astype(np.float32)
                found[places] = codes * scale + middle
    return found


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("grouping", ["input", "output", "flattened"])
@pytest.mark.parametrize(
    ("symmetric", "divisor"), [(True, "largest_code"), (True, "half_range"), (False, "half_range")]
)
@pytest.mark.parametrize("size", [4, 5, "channel"])
@pytest.mark.parametrize("bits", [2, 4, 7])
def test_every_grouping_equals_a_slow_quantizer(bits, size, symmetric, divisor, grouping, turned):
    """12 x 18 with groups of 5 leaves a rest in every grouping."""
    for scales in ("float16", "float32"):
        scheme = Scheme(bits, size, symmetric, divisor, grouping, scales=scales)
        matrix = weights(12, 18)
        assert np.array_equal(
            dequantize(quantize(matrix, scheme, turned)).numpy(), slowly(matrix.numpy(), scheme, turned)
        )


@given(st.integers(2, 8), st.integers(1, 41), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_packed_codes_come_back_and_take_no_more_bytes_than_they_must(bits, n, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(-(2 ** (bits - 1)), 2 ** (bits - 1), (rows, n), generator=generator).to(torch.int8)
    packed = pack(codes, bits)
    assert packed.shape == (rows, -(-n * bits // 8))
    assert torch.equal(unpack(packed, bits, n), codes)
    stream = sum((int(code) + 2 ** (bits - 1)) << (bits * place) for place, code in enumerate(codes[0]))
    assert bytes(packed[0].tolist()) == stream.to_bytes(packed.shape[1], "little")


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", range(2, 9))
def test_no_weight_moves_by_more_than_half_a_step(bits, symmetric):
    matrix = weights(16, 64)
    scheme = Scheme(bits, 16, symmetric, scales="float32")
    q = quantize(matrix, scheme)
    steps = q.scales.repeat_interleave(16, dim=1)
    assert ((dequantize(q) - matrix).abs() <= steps * 0.5001).all()
    assert q.codes.min() >= scheme.lowest and q.codes.max() <= scheme.highest


def test_the_larger_divisor_cuts_the_largest_weight():
    group = torch.tensor([[1.0, 0.5, -0.25, 0.0]])
    assert dequantize(quantize(group, Scheme(4, 4, divisor="half_range", scales="float32")))[0, 0] == 7 / 8
    assert dequantize(quantize(-group, Scheme(4, 4, divisor="half_range", scales="float32")))[0, 0] == -1


@pytest.mark.parametrize("grouping", ["input", "output", "flattened"])
@pytest.mark.parametrize(
    ("what", "choice"),
    [
        ("a scale", {}),
        ("a scale", {"scale": "search"}),
        ("a middle", {"symmetric": False}),
        ("an outlier", {"outliers": 1 / 256}),
    ],
)
def test_what_the_format_of_the_scales_cannot_hold_is_named(what, choice, grouping):
    matrix = weights(16, 16)
    if what == "a middle":
        matrix += 1e6
    else:
        matrix[3, 5] = 1e6
    scheme = Scheme(2, 4, grouping=grouping, **choice)
    with pytest.raises(OutOfRangeError, match=rf"float16 cannot hold {what} of m, whose largest weight is 1e\+06: .*"):
        quantize(matrix, scheme, name="m")
    for scales in ("bfloat16", "float32"):
        assert dequantize(quantize(matrix, replace(scheme, scales=scales))).isfinite().all()


def test_a_search_takes_a_smaller_scale_where_the_widest_does_not_fit():
    group = torch.tensor([[7e4, 100.0, -100.0, 50.0]])
    with pytest.raises(OutOfRangeError):
        quantize(group, Scheme(2, 4))
    assert dequantize(quantize(group, Scheme(2, 4, scale="search"))).isfinite().all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_groups_without_spread_and_groups_too_small_for_the_format(symmetric):
    scheme = Scheme(4, 8, symmetric)
    assert torch.equal(dequantize(quantize(torch.zeros(2, 16), scheme)), torch.zeros(2, 16))
    tiny = torch.full((1, 8), 1e-12)
    assert torch.equal(dequantize(quantize(tiny, scheme)), torch.zeros(1, 8))
    alike = torch.full((1, 8), 0.75)
    assert torch.allclose(dequantize(quantize(alike, scheme)), alike, rtol=2**-10)


def test_smaller_groups_move_the_weights_less():
    matrix = weights(8, 1024)
    errors = [
        (dequantize(quantize(matrix, Scheme(8, size))) - matrix).abs().mean().item() for size in (16, 64, 256, 1024)
    ]
    assert errors == sorted(errors) and errors[0] < errors[-1] / 1.3


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_searched_scale_is_better_in_every_group_or_equal(symmetric):
    matrix = weights(64, 64)
    widest = Scheme(3, 32, symmetric)

    def squared(scheme):
        return (dequantize(quantize(matrix, scheme)) - matrix).view(-1, 32).square().sum(1)

    before, after = squared(widest), squared(replace(widest, scale="search"))
    assert (after <= before + 1e-6).all() and after.sum() < 0.9 * before.sum()


def test_outliers_are_kept_apart_and_no_longer_set_the_scale():
    matrix = weights(8, 64)
    matrix[3, 5], matrix[6, 1] = 40.0, -30.0
    q = quantize(matrix, Scheme(4, 32, outliers=2 / 512))
    assert q.outlier_places.tolist() == [3 * 64 + 5, 6 * 64 + 1]
    read = dequantize(q)
    assert read[3, 5] == 40 and read[6, 1] == -30
    crude = dequantize(quantize(matrix, Scheme(4, 32)))
    assert (read - matrix)[3].abs().mean() < (crude - matrix)[3].abs().mean() / 3


def test_weights_that_lie_on_the_grid_come_back_exactly():
    codes = torch.arange(-8, 8).repeat(4, 2).float()
    matrix = codes * 0.25 + 1.5
    assert torch.equal(dequantize(quantize(matrix, Scheme(4, 32, symmetric=False))), matrix)


def test_a_rest_can_be_refused():
    with pytest.raises(QuantizationError, match=r"group_size 64 does not divide a line of 100 weights \(36 are left"):
        quantize(weights(4, 100), Scheme(4, 64, rest="refuse"))
