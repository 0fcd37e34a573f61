"""A model whose values no float32 can hold: said with layer and site, and never as a number."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
import torch
from random_models import Pair
from safetensors.torch import load_file, save_file
from tokentrail.errors import NotFiniteError
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import Chain, Tap
from tokentrail.measure.answers import log_probabilities
from tokentrail.measure.overflow import Overflow, overflow
from tokentrail.measure.reference import open_reference
from tokentrail.stages.parity import parity, parity_layers


@pytest.fixture(autouse=True)
def without_gradients():
    """As every stage runs; a norm keeps what it made in one pass for the next, which must not be of another mode."""
    with torch.inference_mode():
        yield


def with_huge(pair, folder, part: str, layer: int):
    """The pair with one matrix of a layer stored as large as float32 can hold, as a checkpoint of its own."""
    (stored,) = pair.checkpoint.tensor_files
    tensors = load_file(stored)
    (name,) = [name for name in tensors if f".{layer}." in name and name.endswith(f"{part}.weight")]
    tensors[name] = tensors[name] / tensors[name].abs().max() * 3e38
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return replace(pair, folder=folder)


PARTS = {
    "gpt2": ["mlp.c_fc", "mlp.c_proj", "attn.c_proj"],
    "qwen3": ["up_proj", "down_proj", "o_proj", "v_proj"],
    "granite-nope": ["shared_mlp.output_linear"],
}


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize(("variant", "part"), [(variant, part) for variant in PARTS for part in PARTS[variant]])
def test_where_both_passes_overflow_is_named(pair, tmp_path, variant, part, layer):
    huge = with_huge(pair(variant), tmp_path, part, layer)
    prompt = parity.Encoded("alice", "", huge.ids[:1, :5], 0)
    site, at = overflow(huge.ours(), prompt.ids).first
    assert at in (layer, layer + 1)  # a matrix shows it itself, or the next norm, which squares
    with pytest.raises(NotFiniteError) as caught:
        parity.check_finite(huge.ours(), open_reference(huge.checkpoint), prompt)
    sentence = str(caught.value)
    assert f"on prompt alice, the model's own pass overflows float32, first at layer {at}, site {site}" in sentence
    assert "in transformers as here, first at layer" in sentence
    parity.check_finite(pair(variant).ours(), pair(variant).reference, prompt)


def test_a_pass_that_overflows_alone_is_told_from_one_that_does_as_transformers(pair, tmp_path):
    huge = with_huge(pair("qwen3"), tmp_path, "down_proj", 1)
    prompt = parity.Encoded("alice", "", huge.ids[:1, :5], 0)
    with pytest.raises(NotFiniteError, match=r"one of the two passes .* ours first at layer .*, transformers' nowhere"):
        parity.check_finite(huge.ours(), pair("qwen3").reference, prompt)
    with pytest.raises(NotFiniteError, match="ours nowhere, transformers' first at layer"):
        parity.check_finite(pair("qwen3").ours(), open_reference(huge.checkpoint), prompt)


@pytest.mark.parametrize("stage", [parity, parity_layers])
def test_the_stages_raise_it_before_there_is_a_table(loaded, settings, tmp_path, stage):
    config = loaded.checkpoint.config
    own = Pair(None, loaded.checkpoint.tensor_files[0].parent, config)
    part = {"gpt2": "mlp.c_proj", "qwen3": "down_proj"}.get(config["model_type"], "output_linear")
    huge = with_huge(own, tmp_path, part, 1)
    with pytest.raises(
        NotFiniteError, match=r"on prompt alice, the model's own pass overflows float32, first at layer"
    ):
        stage.measure(replace(loaded, model=huge.ours(), checkpoint=huge.checkpoint), settings)
    assert isinstance(stage.measure(loaded, settings), pl.DataFrame)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_an_answer_is_not_read_from_logits_that_overflowed(value):
    """A NaN is no larger than anything, so that a rank would be 0, and a divergence of it nothing."""
    logits = torch.randn(2, 9)
    log_probabilities(logits)
    logits[1, 4] = value
    with pytest.raises(NotFiniteError, match="logits hold NaN or infinity in float32"):
        log_probabilities(logits)


class Spoil(Tap):
    """Infinity at one site of one layer; without one, a list of the sites that there are."""

    def __init__(self, at=None):
        self.at = at
        self.seen = []

    def __call__(self, site, layer, tensor):
        self.seen.append((site, layer))
        return torch.full_like(tensor, torch.inf) if (site, layer) == self.at else tensor


def test_every_site_is_looked_at(pair):
    model, ids = pair("granite-nope").ours(), pair("granite-nope").ids[:1, :4]
    sites = Spoil()
    forward(model, ids, tap=sites)
    for at in sites.seen:
        found = Overflow()
        forward(model, ids, tap=Chain(Spoil(at), found))
        assert found.first == at
