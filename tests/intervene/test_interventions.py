"""Attention weights under edits, and what cannot be edited."""

from __future__ import annotations

import pytest
import torch
from tokentrail.errors import InterventionError
from tokentrail.forward.families import read_spec
from tokentrail.intervene.edits import apply
from tokentrail.intervene.interventions import Intervention, Operation, Variant, check


def edited(kind, weights, keys=(0,), heads=None):
    changed = weights.clone()
    apply(Intervention("pattern", (0,), Operation(kind), heads, keys), 0, changed)
    return changed


@pytest.fixture
def weights():
    scores = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return scores.masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf")).softmax(-1)


def test_a_mask_is_a_softmax_without_the_key(weights):
    expected = weights.clone()
    for q in range(1, 5):
        others = weights[:, q, 1:]
        expected[:, q, 0], expected[:, q, 1:] = 0, others / others.sum(-1, keepdim=True)
    assert torch.allclose(edited("mask", weights), expected)


def test_masking_is_dropping_the_value_and_renormalising(weights):
    dropped, scaled, masked = (edited(kind, weights) for kind in ("drop_value", "renormalise", "mask"))
    assert torch.equal(dropped[:, 1:, 0], torch.zeros(2, 4, dtype=torch.float64))
    assert torch.equal(dropped[:, 1:, 1:], weights[:, 1:, 1:])
    assert torch.equal(scaled[..., 0], weights[..., 0])
    assert torch.allclose(masked[:, 1:, 1:], scaled[:, 1:, 1:])


@pytest.mark.parametrize("kind", ["mask", "drop_value", "renormalise"])
def test_a_query_that_sees_only_the_key_is_left_alone(weights, kind):
    assert torch.equal(edited(kind, weights)[:, 0], weights[:, 0])
    assert torch.isfinite(edited(kind, weights, keys=(0, 1))).all()


@pytest.mark.parametrize("kind", ["mask", "drop_value", "renormalise", "zero"])
def test_other_heads_are_not_touched(weights, kind):
    assert torch.equal(edited(kind, weights, heads=(1,))[0], weights[0])


def test_masking_a_key_that_holds_almost_everything_stays_exact():
    weights = torch.tensor([[[1.0, 0.0], [1 - 1e-7, 1e-7]]])
    assert torch.allclose(edited("mask", weights)[0, 1], torch.tensor([0.0, 1.0]))


def variant(site="mixer_out", layers=(0,), kind="zero", **where):
    return Variant("v", (Intervention(site, layers, Operation(kind), **where),))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Variant("v", ()), "changes nothing"),
        (variant(layers=()), "changes nothing"),
        (variant(site="mlp"), "edits 'mlp'; the sites that can be edited are"),
        (variant(site="logits"), "edits 'logits'"),
        (variant(layers=(4,)), "edits layer 4, but the model has 4 layers"),
        (variant(layers=(-1,)), "edits layer -1"),
        (variant(site="z", layers=(1,), heads=(6,)), "edits head 6 at layer 1, which has 6 heads"),
        (variant(site="ssm_y", layers=(1,)), "edits ssm_y at layer 1, which has no such site"),
        (variant(heads=(0,)), "names heads at mixer_out, which has none"),
        (variant(positions=(9,)), "edits position 9, but the prompt has 9 tokens"),
        (variant(site="pattern", layers=(1,), kind="mask"), "name the key positions"),
        (variant(site="pattern", layers=(1,), kind="mean"), "asks for 'mean' at pattern, which takes"),
        (variant(kind="mask"), "asks for 'mask' at mixer_out, which takes"),
        (
            variant(site="ssm_state", layers=(1,), positions=(2,)),
            "edits ssm_state at layer 1, which has no such site",
        ),
        (variant(site="ssm_state"), "name the one position"),
        (variant(site="ssm_state", positions=(1, 2)), "name the one position"),
        (variant(site="ssm_state", positions=(8,)), "name the one position, before the last of 9"),
        (variant(site="ssm_state", kind="mask", positions=(1,)), "asks for 'mask' at ssm_state, which takes"),
        (
            Variant("v", (*variant().interventions, *variant(site="ssm_state", positions=(2,)).interventions)),
            "edits states and something else",
        ),
        (variant(kind="replace"), "has no values for mixer_out at layer 0"),
    ],
)
def test_what_the_model_or_the_site_cannot_take_is_refused_by_name(bad, message):
    from random_models import VARIANTS

    with pytest.raises(InterventionError, match=message):
        check(bad, read_spec(VARIANTS["granite-nope"]), tokens=9)
