"""The worked examples say what they show, and the cells compute the same."""

from __future__ import annotations

import doctest

import pytest
import torch
from tokentrail import examples
from tokentrail.forward import spec as specs
from tokentrail.forward.cells.attention import scores_of, weights_of
from tokentrail.forward.cells.ffn import FfnWeights, ffn
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.cells.norm import NormWeights, norm
from tokentrail.forward.place import Place
from tokentrail.forward.taps import NO_TAP
from tokentrail.measure import answers

ROW = [0.3, -1.2, 2.0, 0.7]


def test_every_example_is_as_printed():
    results = doctest.testmod(examples)
    assert results.failed == 0
    public = [name for name, thing in vars(examples).items() if callable(thing) and not name[0].isupper()]
    documented = {test.name.rpartition(".")[2] for test in doctest.DocTestFinder().find(examples) if test.examples}
    assert documented == set(public), "every function has an example"


def test_attention_is_the_cells():
    x = [[0.1 * (i + 1) * (j - 2) for j in range(4)] for i in range(5)]
    own = torch.tensor(examples.causal_weights(x, x), dtype=torch.float64)
    q = torch.tensor(x, dtype=torch.float64)[None, None]
    cell = specs.Attention(1, 1, 4, 4**-0.5, None, None, False, False)
    theirs = weights_of(scores_of(q, q, cell), cell, Place(torch.zeros(1, 5), None, None))
    assert torch.allclose(own, theirs[0, 0])


def test_layer_norm_is_the_cells():
    ones, zeros = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    row = torch.tensor(ROW, dtype=torch.float64)
    theirs = norm(row, NormWeights(2 * ones, zeros + 0.5), specs.Norm("layernorm", 1e-3))
    assert examples.layer_norm(ROW, 1e-3, scale=2.0, offset=0.5) == pytest.approx(theirs.tolist())


@pytest.mark.parametrize("x", [-3.0, -0.2, 0.0, 0.7, 4.0])
def test_gelu_is_the_cells(x):
    one = Linear(torch.ones(1, 1, dtype=torch.float64))
    row = torch.tensor([[[x]]], dtype=torch.float64)
    y = ffn(row, FfnWeights(one, one), specs.Ffn("gelu_tanh", False, 1, False), None, None, 0, NO_TAP)[0]
    assert examples.gelu(x) == pytest.approx(y.item(), abs=1e-12)


def test_softmax_and_entropy_are_the_measures():
    log_p = answers.log_probabilities(torch.tensor(ROW, dtype=torch.float64))
    assert examples.softmax(ROW) == pytest.approx(log_p.exp().tolist())
    assert examples.entropy_bits(examples.softmax(ROW)) == pytest.approx(answers.entropy_bits(log_p))
