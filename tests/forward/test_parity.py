"""Ours equals transformers, at small random models of every variant and at the full published shapes."""

from __future__ import annotations

import pytest
import torch
from random_models import FULL_SHAPES, VARIANTS, build
from tokentrail.forward.cells import linear
from tokentrail.forward.frame import forward

TOLERANCE = 1e-4


@pytest.fixture(params=[{}, {"block": True}, {"decode": True}], ids=["plain", "blocked", "both"])
def layout(request, monkeypatch):
    """How the matrices are laid out; those of these small models count as large."""
    monkeypatch.setattr(linear, "SMALL", 0)
    return request.param


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_agrees_at_every_position(pair, variant, layout):
    with torch.inference_mode():
        ours = forward(pair(variant).ours(**layout), pair(variant).ids)
    assert (ours - pair(variant).logits).abs().max() < TOLERANCE


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("variant", VARIANTS)
def test_one_token_is_a_prompt(pair, variant, layout, rows):
    ids = pair(variant).ids[:rows, :1]
    with torch.inference_mode():
        apart = forward(pair(variant).ours(**layout), ids) - pair(variant).reference(ids, use_cache=False).logits
    assert apart.abs().max() < TOLERANCE


def test_layouts_are_what_was_asked_for():
    large, small = (linear.Linear(torch.ones(side, side)) for side in (512, 511))
    assert linear.blocked(small) is small
    assert linear.blocked(large).plain is None
    assert linear.blocked(large, keep=True).plain is large.weight


@pytest.mark.slow
@pytest.mark.parametrize("shape", FULL_SHAPES)
def test_the_published_shapes_agree(tmp_path, shape):
    pair = build(FULL_SHAPES[shape], tmp_path)
    ids = torch.randint(0, pair.config["vocab_size"], (1, 105), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        reference = pair.reference(ids, use_cache=False).logits
        pair.reference = None
        ours = forward(pair.ours(block=True), ids)
    assert (ours - reference).abs().max() < TOLERANCE
    assert reference.abs().max() > 1  # of a size at which the tolerance means something


@pytest.mark.parametrize("variant", ["gpt2", "llama3-scaling", "qwen3", "granite-two-groups"])
def test_half_precision_stays_near(pair, variant):
    """bfloat16 keeps 8 bits: the pass must run in it and stay within a few per cent of the logits' scale."""
    with torch.inference_mode():
        ours = forward(pair(variant).ours(dtype=torch.bfloat16), pair(variant).ids)
    assert ours.dtype == torch.bfloat16
    assert (ours.float() - pair(variant).logits).abs().max() < 0.1 * pair(variant).logits.abs().max()
