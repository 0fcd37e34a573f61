"""Bytes by the formula: the published figures from GPT-2's shapes alone, and stored bytes of ragged groups."""

from __future__ import annotations

import pytest
import torch
from random_models import FULL_SHAPES, VARIANTS
from tokentrail.errors import QuantizationError
from tokentrail.forward.families import read_spec
from tokentrail.forward.shapes import shapes
from tokentrail.quantize.packed import as_stored
from tokentrail.quantize.parts import HEAD, PARTS, SETS, TOKENS, chosen, parts, quantizable, splits
from tokentrail.quantize.payload import matrix_payload, model_payload
from tokentrail.quantize.quantizer import quantize
from tokentrail.quantize.scheme import Scheme

MIB = 2**20


@pytest.fixture(scope="module")
def gpt2():
    return read_spec({key: value for key, value in FULL_SHAPES["gpt2"].items() if value is not None})


@pytest.mark.parametrize(
    ("bits", "group", "weights", "mib", "ratio"),
    [(8, 64, "all", 122.73, 3.87), (4, 64, "all", 63.45, 7.48), (4, 32, "compute", 196.26, 2.42)],
)
def test_the_published_payloads_follow_from_the_shapes(gpt2, bits, group, weights, mib, ratio):
    whole = model_payload(gpt2)
    assert whole / MIB == pytest.approx(474.70, abs=0.005)
    payload = model_payload(gpt2, Scheme(bits, group), chosen(gpt2, [weights]))
    assert payload / MIB == pytest.approx(mib, abs=0.005)
    assert whole / payload == pytest.approx(ratio, abs=0.005)


def test_the_published_matrix_and_the_seven_billion(gpt2):
    assert matrix_payload(quantizable(gpt2)["layers.0.ffn.up.weight"], Scheme(4, 64)) == 1224 * 1024
    assert matrix_payload((1, 64), Scheme(4, 64)) == 34
    assert matrix_payload((1000, 7_000_000), Scheme(4, 64)) / 1e9 == pytest.approx(3.719, abs=0.0005)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("shape", [(7, 64), (5, 37), (1, 3)])
@pytest.mark.parametrize("size", [4, 16, "channel"])
@pytest.mark.parametrize("bits", range(2, 9))
def test_stored_bytes_are_the_formula_for_ragged_groups_too(bits, size, shape, symmetric):
    scheme = Scheme(bits, size, symmetric)
    stored = as_stored("m", quantize(torch.randn(shape), scheme))
    assert sum(t.nbytes for t in stored.values()) == matrix_payload(shape, scheme)


def test_outliers_and_groups_of_columns_are_counted():
    scheme = Scheme(4, 10, grouping="output", outliers=0.1)
    q = quantize(torch.randn(25, 12), scheme)
    kept = q.outlier_places.nbytes + q.outlier_values.nbytes
    assert matrix_payload((25, 12), scheme) == 25 * 6 + q.scales.nbytes + kept
    assert q.scales.shape == (12, 3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_parts_are_all_matrices_but_the_convolution(variant):
    spec = read_spec({key: value for key, value in VARIANTS[variant].items() if value is not None})
    matrices = {name for name, shape in shapes(spec).items() if len(shape) == 2 and ".conv." not in name}
    assert chosen(spec, ["all"]) == matrices | ({HEAD} if spec.tied else set())
    assert chosen(spec, ["compute"]) == {name for name in matrices if name.startswith("layers.")}
    assert set(parts(spec)) <= set(PARTS)


def test_one_use_of_a_tied_table_keeps_both_tables(gpt2):
    scheme, table = Scheme(4, 64), 50257 * 768
    whole, both = model_payload(gpt2), model_payload(gpt2, scheme, chosen(gpt2, ["tokens"]))
    packed = matrix_payload((50257, 768), scheme)
    assert both == whole - 4 * table + packed
    for use, name in (("tokens.input", TOKENS), ("tokens.output", HEAD)):
        tensors = chosen(gpt2, [use])
        assert tensors == {name} and splits(gpt2, tensors)
        assert model_payload(gpt2, scheme, tensors) == whole + packed


def test_parts_that_a_model_lacks_are_left_out_and_unknown_ones_refused(gpt2):
    assert chosen(gpt2, ["mamba2.in_proj", "head"]) == frozenset()
    with pytest.raises(QuantizationError, match=r"weights names 'mamba2\.conv', which no model has; choose among"):
        chosen(gpt2, ["mamba2.conv"])


def test_the_configuration_knows_the_parts_that_the_library_knows():
    from typing import get_args

    from tokentrail.stages.quantization.settings import QuantizationScheme

    (literal,) = get_args(QuantizationScheme.model_fields["weights"].annotation)
    assert set(get_args(literal)) == {*PARTS, *SETS}
