"""The tap sees every site under its fixed name, changes nothing by looking, and its edits take effect."""

from __future__ import annotations

import pytest
import torch
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import COSTLY, SITES, Record, Tap


@pytest.mark.parametrize("variant", ["gpt2", "llama", "qwen3", "granite-two-groups"])
def test_looking_at_everything_changes_nothing(pair, variant):
    """The explicit softmax and the unrolled matrix, which only a tap asks for, equal the fused forms."""
    model, ids = pair(variant).ours(), pair(variant).ids
    record = Record(*SITES)
    with torch.inference_mode():
        assert (forward(model, ids, tap=record) - forward(model, ids)).abs().max() < 1e-5
    sites = {site for site, _ in record.seen}
    spec = model.spec
    around = {"token_rows", "embed", "final_norm", "logits"} | ({"position_rows"} if spec.learned_positions else set())
    told = {site for layer in spec.layers for site in layer.sites}
    assert sites - told - {"qk"} == around
    assert told <= sites, "a cell names the sites that it has"


@pytest.mark.parametrize("variant", ["gpt2", "qwen3", "granite-two-groups"])
def test_a_tap_that_costs_nothing_changes_no_bit(pair, variant, monkeypatch):
    """What is measured with a tap must be what the model says without one, to the last bit."""
    from tokentrail.forward.cells import linear
    from tokentrail.forward.frame import last

    monkeypatch.setattr(linear, "SMALL", 0)
    model, ids = pair(variant).ours(block=True), pair(variant).ids
    with torch.inference_mode():
        for read in (None, last(ids)):
            seen = forward(model, ids, tap=Record("resid_post", "z"), read=read)
            assert torch.equal(seen, forward(model, ids, read=read))


def test_shapes_are_as_documented(pair):
    model, ids = pair("granite-two-groups").ours(), pair("granite-two-groups").ids
    record = Record(*SITES)
    with torch.inference_mode():
        forward(model, ids, tap=record)
    shape = {key: tuple(x.shape) for key, x in record.seen.items()}
    assert shape["embed", -1] == shape["resid_pre", 0] == shape["mixer_out", 0] == (2, 150, 48)
    assert shape["pattern", 0] == (2, 12, 150, 150)  # Mamba2, unrolled
    assert shape["pattern", 1] == (2, 6, 150, 150)  # attention
    assert shape["q", 1] == shape["z", 1] == (2, 6, 150, 8)
    assert shape["k", 1] == shape["v", 1] == (2, 2, 150, 8)
    assert shape["conv_out", 0] == (2, 150, 96 + 2 * 2 * 16)
    assert shape["dt", 0] == (2, 150, 12)
    assert shape["ssm_state", 0] == (2, 12, 8, 16)
    assert shape["ssm_y", 0] == (2, 150, 12, 8)
    assert shape["ffn_act", 3] == (2, 150, 64)
    assert shape["logits", 4] == (2, 150, 97)


def test_attention_rows_sum_to_one_and_see_no_future(pair):
    record = Record("pattern")
    with torch.inference_mode():
        forward(pair("qwen3").ours(), pair("qwen3").ids, tap=record)
    for pattern in record.seen.values():
        assert (pattern.sum(-1) - 1).abs().max() < 1e-5
        assert torch.equal(pattern.triu(1), torch.zeros_like(pattern))


@pytest.mark.parametrize("site", sorted(set(SITES) - {"ssm_state"}))
def test_an_edit_at_every_site_reaches_the_logits(pair, site):
    variant = "gpt2" if site == "position_rows" else "granite-nope"

    class Shift(Tap):
        costly = COSTLY & {site}

        def __call__(self, here, layer, tensor):
            return 1.5 * tensor + 1 if here == site else tensor

    model, ids = pair(variant).ours(), pair(variant).ids
    with torch.inference_mode():
        apart = forward(model, ids, tap=Shift()) - forward(model, ids)
    assert apart.abs().max() > 1e-3


def test_a_tap_may_add_rows_at_a_layer(pair):
    """A row that leaves the batch's first row at layer 2 is that row with the edits of layer 2 and above."""

    class Branch(Tap):
        def __call__(self, site, layer, tensor):
            if (site, layer) == ("resid_pre", 2):
                return torch.cat([tensor, tensor[:1]])
            if (site, layer) == ("mixer_out", 2):
                tensor[-1] = 0
            return tensor

    class Zero(Tap):
        def __call__(self, site, layer, tensor):
            return tensor * 0 if (site, layer) == ("mixer_out", 2) else tensor

    for variant in ("gpt2", "qwen3", "granite-nope"):
        model, ids = pair(variant).ours(), pair(variant).ids[:1]
        with torch.inference_mode():
            clean, branched = forward(model, ids, tap=Branch())
            assert (clean - forward(model, ids)[0]).abs().max() < 1e-5
            assert (branched - forward(model, ids, tap=Zero())[0]).abs().max() < 1e-5


def test_an_unknown_site_is_refused():
    with pytest.raises(ValueError, match="no such site: mlp_out"):
        Record("mlp_out")
