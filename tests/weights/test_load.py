"""From tensors on disk to a model: everything that does not fit is refused by name."""

from __future__ import annotations

import pytest
import torch
from random_models import VARIANTS, build
from safetensors import safe_open
from safetensors.torch import save_file
from tokentrail.errors import ConfigError, WeightsError
from tokentrail.forward.families import read_spec, recipes
from tokentrail.forward.frame import forward
from tokentrail.weights.load import load_model, usable_device


def stored(pair):
    with safe_open(pair.folder / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


@pytest.fixture
def copy(tmp_path):
    """A checkpoint of a variant whose tensors a test has changed."""

    def make(variant, change):
        pair = build(VARIANTS[variant], tmp_path / str(len(list(tmp_path.iterdir()))))
        tensors = stored(pair)
        tensors = change(tensors) or tensors
        save_file({k: v.contiguous() for k, v in tensors.items()}, pair.folder / "model.safetensors")
        return pair

    return make


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_recipe_backwards_gives_what_is_stored(pair, variant):
    tensors = stored(pair(variant))
    spec = read_spec(pair(variant).config)
    made_from, useless = recipes(spec, set(tensors))
    found = {name: part for made in made_from.values() for name, part in made.stored(made.ours(tensors.get)).items()}
    assert found.keys() | useless | ({"lm_head.weight"} if spec.tied else set()) >= tensors.keys()
    for name, part in found.items():
        assert torch.equal(part, tensors[name]), name


@torch.inference_mode()
def assert_still_agrees(pair):
    assert (forward(pair.ours(), pair.ids) - pair.logits).abs().max() < 1e-4


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt2_with_and_without_prefix_and_with_mask_buffers(copy, prefix):
    def change(tensors):
        bare = {name.removeprefix("transformer."): t for name, t in tensors.items()}
        for i in range(3):
            bare[f"h.{i}.attn.bias"] = torch.ones(1, 1, 8, 8)
            bare[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
        return {prefix + name: t for name, t in bare.items()}

    assert_still_agrees(copy("gpt2", change))


def test_a_stored_head_that_is_tied_is_accepted(copy):
    pair = copy("llama-tied", lambda t: t | {"lm_head.weight": t["model.embed_tokens.weight"].clone()})
    assert_still_agrees(pair)


def test_a_stored_head_that_differs_from_the_table_it_is_tied_to_is_refused(copy):
    pair = copy("llama-tied", lambda t: t | {"lm_head.weight": t["model.embed_tokens.weight"] + 1})
    with pytest.raises(WeightsError, match=r"lm_head\.weight differs"):
        pair.ours()


def test_bfloat16_weights_are_widened_exactly(copy):
    pair = copy("granite-nope", lambda tensors: {name: t.bfloat16() for name, t in tensors.items()})
    rounded = {name: t.float() for name, t in stored(pair).items()}
    pair.reference.load_state_dict(rounded)
    assert_still_agrees(pair)


def test_weights_in_several_files_are_one_model(tmp_path, pair):
    sound = pair("qwen3")
    tensors, names = stored(sound), sorted(stored(sound))
    (tmp_path / "m").mkdir()
    for i in range(3):
        save_file({n: tensors[n] for n in names[i::3]}, tmp_path / "m" / f"model-{i}.safetensors")
    split = type(sound)(sound.reference, tmp_path / "m", sound.config)
    assert_still_agrees(split)


@pytest.mark.parametrize("variant", ["gpt2", "llama", "qwen2", "qwen3", "granite-nope"])
def test_a_missing_an_unknown_and_a_misshapen_tensor_are_named(copy, variant):
    name = "transformer.ln_f.weight" if variant == "gpt2" else "model.norm.weight"
    pair = copy(variant, lambda t: {k: v for k, v in t.items() if k != name})
    with pytest.raises(WeightsError, match=f"lacks the tensor {name}"):
        pair.ours()
    pair = copy(variant, lambda t: t | {"extra.weight": torch.ones(2)})
    with pytest.raises(WeightsError, match=r"holds the tensor extra\.weight"):
        pair.ours()
    pair = copy(variant, lambda t: t | {name: t[name][..., :-1]})
    with pytest.raises(WeightsError, match=f"{name} has the shape"):
        pair.ours()


def test_the_weights_are_copied_out_of_the_file(copy):
    """A model in memory must not change when its file does."""
    pair = copy("llama", lambda t: None)
    model = load_model(pair.checkpoint)
    before = model.tokens.clone()
    file = pair.folder / "model.safetensors"
    with file.open("r+b") as handle:
        handle.seek(file.stat().st_size // 2)
        handle.write(b"\xff" * 1000)
    assert torch.equal(model.tokens, before)


@pytest.mark.parametrize("name", ["cuda:99", "mps:7", "warp"])
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(ConfigError, match=f"device is '{name}'"):
        usable_device(name)
