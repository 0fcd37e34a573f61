"""Checkpoints as transformers saves them, this version and older ones, are read as what they were saved from."""

from __future__ import annotations

import json
import math

import pytest
import torch
import transformers
from families import CASES, VARIANTS
from tokentrail.errors import UnsupportedError
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import forward
from tokentrail.forward.reading.without_effect import BOOKKEEPING, GENERATION, is_without_effect
from tokentrail.measure.reference import open_reference
from tokentrail.weights import model_config

TOLERANCE = 1e-4


@pytest.fixture(params=VARIANTS)
def saved(request, pair, tmp_path):
    """The pair of a variant, its config.json as this transformers writes it, and where that lies."""
    made = pair(request.param)
    made.reference.config.save_pretrained(tmp_path)
    return made, tmp_path / "config.json"


def parted(made, config) -> float:
    """The largest difference in a logit between what a config.json makes of the weights here and the saved model."""
    checkpoint = made.checkpoint.__class__(config, made.checkpoint.tensor_files, None, "0" * 64, files={})
    with torch.inference_mode():
        from_file = open_reference(checkpoint)(made.ids, use_cache=False).logits
        ours = forward(made.__class__(made.reference, made.folder, config).ours(), made.ids)
    assert torch.equal(from_file, made.logits)  # or the file does not say what was saved
    return (ours - made.logits).abs().max().item()


def test_every_variant_comes_back_from_save_pretrained(saved):
    made, path = saved
    assert parted(made, model_config.read(path)) < TOLERANCE


def as_version_4_wrote_it(config: dict) -> dict:
    """The spelling of 2020 to 2025, with the keys of the base class that some of its versions wrote."""
    spelt = next(cases.in_version_4 for cases in CASES.values() if config["model_type"] in cases.model_types)
    config = spelt({key: value for key, value in config.items() if value is not None})
    config["torch_dtype"] = config.pop("dtype")
    if parameters := config.pop("rope_parameters", None):
        config["rope_theta"] = parameters.pop("rope_theta")
        kind = parameters.pop("rope_type")
        config["rope_scaling"] = {"type": kind, "rope_type": kind} | parameters if kind != "default" else None
    wrote = {"tokenizer_class": "GPT2TokenizerFast", "transformers_version": "4.2.0", "prefix": None}
    wrote |= {"max_length": 20, "do_sample": False, "num_beams": 1, "temperature": 1.0, "top_k": 50, "top_p": 1.0}
    wrote |= {"repetition_penalty": 1.0, "pruned_heads": {}, "torchscript": False, "use_bfloat16": False}
    wrote |= {"_name_or_path": "/home/someone/model", "gradient_checkpointing": False, "tie_encoder_decoder": False}
    return config | wrote | {"add_cross_attention": False, "chunk_size_feed_forward": 0, "id2label": {"0": "LABEL_0"}}


def test_every_variant_is_read_in_the_older_spelling(saved):
    made, path = saved
    assert parted(made, as_version_4_wrote_it(model_config.read(path))) < TOLERANCE


def test_all_generation_settings_of_transformers_are_known_to_change_nothing():
    attributes = {key for key in vars(transformers.GenerationConfig()) if not key.startswith("_")}
    assert attributes <= GENERATION | BOOKKEEPING
    assert not GENERATION & BOOKKEEPING


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pruned_heads", {"0": [1]}),
        ("rope_interleaved", True),
        ("add_cross_attention", True),
        ("quantization_config", {"bits": 4}),
        ("unsloth_fixed", True),
    ],
)
def test_a_key_that_may_have_an_effect_is_refused_with_a_remedy_for_every_source(key, value):
    assert not is_without_effect(key, value)
    with pytest.raises(UnsupportedError, match=f"{key}: null under the model's key `config` in the configuration"):
        read_spec(VARIANTS["llama"] | {key: value})


@pytest.mark.parametrize("text", ["Infinity", "-Infinity", "NaN"])
@pytest.mark.parametrize("written", ['{"__float__": "%s"}', "%s"], ids=["as version 5", "as version 4"])
def test_numbers_that_json_has_none_for_are_read_wherever_they_stand(tmp_path, text, written):
    path = tmp_path / "config.json"
    special = written % text
    path.write_text(f'{{"a": {special}, "b": [0.0, {special}], "c": {{"d": {special}}}}}')
    config = model_config.read(path)
    for found in (config["a"], config["b"][1], config["c"]["d"]):
        assert str(found) == str(float(text))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("variant", ["gpt2", "llama", "llama3-scaling", "granite-rope", "granite-nope"])
def test_a_number_that_no_pass_can_use_is_refused_by_name(variant, value):
    """Only a limit of the step may be infinite."""
    config = json.loads(json.dumps(VARIANTS[variant]))
    parameters = config.get("rope_parameters") or {}
    reals = [(at, key) for at in (config, parameters) for key, found in at.items() if isinstance(found, float)]
    without_rotation = {"rope_theta"} if config.get("position_embedding_type") == "nope" else set()
    for at, key in reals:
        if key in without_rotation:
            continue
        kept, at[key] = at[key], value
        with pytest.raises(UnsupportedError, match=f"{key} is {value}"):
            read_spec(config)
        at[key] = kept
    read_spec(config)


def test_a_limit_of_the_step_is_a_number_or_infinity():
    config = VARIANTS["granite-dt-limits"]
    assert read_spec(config | {"time_step_limit": [0.0, math.inf]}) == read_spec(config | {"time_step_limit": None})
    for wrong in ([0.0, math.nan], [0.0, "inf"], [0.0], 0.1, [0.0, {"__float__": "huge"}], {"low": 0.0}):
        with pytest.raises(UnsupportedError, match="time_step_limit is"):
            read_spec(config | {"time_step_limit": wrong})


STRANGE = [None, True, False, -1, 0, 3, 0.5, math.inf, "x", "", [], ["x"], [[]], {}, {"a": 1}, [{}]]


@pytest.mark.parametrize(
    "variant", ["gpt2-inner", "llama-head-dim", "llama3-scaling", "qwen2", "qwen3", "granite-rope"]
)
def test_any_value_of_any_key_is_read_or_refused_in_one_sentence(variant):
    config = VARIANTS[variant] | {"layer_types": VARIANTS[variant].get("layer_types")}
    config |= {"rope_scaling": None, "sliding_window": None, "time_step_limit": None, "layers_block_type": None}
    for key in config:
        for value in STRANGE:
            try:
                read_spec(config | {key: value})
            except UnsupportedError as error:
                assert "\n" not in str(error)
    for key in VARIANTS["llama3-scaling"]["rope_parameters"] if variant == "llama3-scaling" else ():
        for value in STRANGE:
            try:
                read_spec(config | {"rope_parameters": config["rope_parameters"] | {key: value}})
            except UnsupportedError as error:
                assert "\n" not in str(error)


def test_two_statements_of_the_rotation_that_differ_are_refused():
    """transformers follows `rope_scaling`, its older spelling, where both are there."""
    scaling = VARIANTS["llama3-scaling"]["rope_parameters"]
    config = VARIANTS["llama"] | {"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}}
    with pytest.raises(UnsupportedError, match=r"rope_scaling is .* what rope_parameters says"):
        read_spec(config | {"rope_scaling": scaling})
    assert read_spec(config | {"rope_parameters": scaling, "rope_scaling": dict(scaling)})


def test_a_theta_that_is_not_stated_is_asked_for_with_what_transformers_assumes():
    assert transformers.LlamaConfig.default_theta == 10000.0
    config = {key: value for key, value in VARIANTS["llama"].items() if key != "rope_theta"}
    with pytest.raises(UnsupportedError, match=r"lacks rope_theta.*assumes rope_theta: 10000\.0\).*key `config`"):
        read_spec(config)
    given = model_config.changed(config, {"rope_theta": 10000.0})
    assert read_spec(given) == read_spec(VARIANTS["llama"])
