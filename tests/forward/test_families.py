"""A config.json is read strictly: what is missing, unknown or unsupported is refused by name."""

from __future__ import annotations

import pytest
from random_models import FULL_SHAPES, VARIANTS
from tokentrail.errors import UnsupportedError
from tokentrail.forward.describe import describe
from tokentrail.forward.families import FAMILIES, read_spec
from tokentrail.forward.spec import Attention, Mamba2, layer_ranges


def config(variant, **changes):
    merged = VARIANTS[variant] | changes
    return {key: value for key, value in merged.items() if value is not ...}


def test_an_unknown_model_type_lists_the_supported_ones():
    with pytest.raises(UnsupportedError, match="model_type is 'mistral'") as caught:
        read_spec({"model_type": "mistral"})
    assert all(family in str(caught.value) for family in FAMILIES)


@pytest.mark.parametrize(
    ("variant", "key", "value"),
    [
        ("gpt2", "activation_function", "gelu"),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True),
        ("gpt2", "reorder_and_upcast_attn", True),
        ("gpt2", "scale_attn_weights", False),
        ("gpt2", "add_cross_attention", True),
        ("gpt2", "tie_word_embeddings", False),
        ("gpt2", "n_head", 7),
        ("gpt2", "n_embd", "48"),
        ("gpt2", "layer_norm_epsilon", None),
        ("llama", "hidden_act", "gelu"),
        ("llama", "num_key_value_heads", 4),
        ("llama", "tie_word_embeddings", "no"),
        ("llama", "rope_theta", None),
        ("llama", "rope_scaling", {"rope_type": "yarn", "factor": 2.0}),
        ("llama", "rope_scaling", {"rope_type": "llama3", "factor": 2.0}),
        ("llama", "partial_rotary_factor", 0.5),
        ("llama", "layer_types", ["sliding_attention"] * 3),
        ("qwen2", "use_sliding_window", True),
        ("qwen3", "head_dim", None),
        ("granite-nope", "num_local_experts", 8),
        ("granite-nope", "position_embedding_type", "alibi"),
        ("granite-nope", "layer_types", ["mamba", "attention", "mamba", "conv"]),
        ("granite-nope", "layer_types", ["mamba"] * 3),
        ("granite-nope", "mamba_d_head", 9),
        ("granite-nope", "mamba_n_groups", 5),
        ("granite-nope", "normalization_function", "layernorm"),
        ("granite-nope", "mamba_conv_bias", 1),
    ],
)
def test_an_unsupported_value_is_refused_by_name(variant, key, value):
    with pytest.raises(UnsupportedError) as caught:
        read_spec(config(variant, **{key: value}))
    message = str(caught.value)
    assert "config.json" in message and "\n" not in message
    assert key in message or "rope" in message or key.replace("mamba_", "") in message


@pytest.mark.parametrize("variant", ["gpt2", "llama", "qwen2", "qwen3", "granite-nope"])
def test_an_unknown_key_is_refused_and_a_harmless_one_is_not(variant):
    with pytest.raises(UnsupportedError, match="the key attention_temperature = 2"):
        read_spec(config(variant, attention_temperature=2))
    harmless = {"torch_dtype": "bfloat16", "transformers_version": "4.1", "architectures": ["X"], "use_cache": True}
    assert read_spec(config(variant, **harmless)) == read_spec(config(variant))


NUMERICAL = {
    "gpt2": ["n_embd", "n_head", "n_layer", "n_positions", "vocab_size", "layer_norm_epsilon", "activation_function"],
    "llama": ["rms_norm_eps", "rope_theta", "hidden_act", "tie_word_embeddings", "intermediate_size"],
    "qwen3": ["head_dim", "rms_norm_eps", "rope_theta", "attention_bias", "tie_word_embeddings"],
    "granite-nope": [
        "embedding_multiplier",
        "residual_multiplier",
        "attention_multiplier",
        "logits_scaling",
        "mamba_n_groups",
        "mamba_conv_bias",
        "mamba_d_state",
        "position_embedding_type",
        "layer_types",
        "num_key_value_heads",
    ],
}


@pytest.mark.parametrize(("variant", "key"), [(v, k) for v, keys in NUMERICAL.items() for k in keys])
def test_nothing_numerical_has_a_silent_default(variant, key):
    with pytest.raises(UnsupportedError, match=key):
        read_spec(config(variant, **{key: ...}))


def test_rope_parameters_and_rope_scaling_say_the_same():
    new = VARIANTS["llama3-scaling"]
    scaling = {k: v for k, v in new["rope_parameters"].items() if k != "rope_theta"}
    old = config("llama3-scaling", rope_parameters=..., rope_theta=50000.0, rope_scaling=scaling)
    assert read_spec(old) == read_spec(config("llama3-scaling", rope_theta=...))


def test_both_spellings_of_layer_kinds_are_one():
    new = ["linear_attention", "full_attention", "linear_attention", "full_attention"]
    assert read_spec(config("granite-nope", layer_types=new)) == read_spec(config("granite-nope"))
    old = config("granite-nope", layer_types=..., layers_block_type=VARIANTS["granite-nope"]["layer_types"])
    assert read_spec(old) == read_spec(config("granite-nope"))


def test_the_published_shapes_are_read():
    granite = read_spec(FULL_SHAPES["granite-4.0-h-350m"])
    attention = [i for i, layer in enumerate(granite.layers) if isinstance(layer.mixer, Attention)]
    assert attention == [10, 13, 17, 27]
    assert all(isinstance(granite.layers[i].mixer, Mamba2) for i in range(32) if i not in attention)
    assert read_spec(FULL_SHAPES["qwen3-0.6b"]).layers[0].mixer.head_dim == 128


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_cell_table_covers_every_layer(variant):
    spec = read_spec(config(variant))
    rows = describe(spec)
    mixers = [row for row in rows if row["part"] == "mixer"]
    covered = sum(len(expand(row["layers"])) for row in mixers)
    assert covered == len(spec.layers)
    shown = {row["cell"]: row["detail"] for row in rows}
    assert shown["context"] == f"{spec.trained_positions} tokens stated"
    assert {"embed", "norm", "residual", "mixer", "ffn", "unembed", "size"} == {row["part"] for row in rows}


def expand(ranges):
    parts = [part.split("-") for part in ranges.split(", ")]
    return [n for part in parts for n in range(int(part[0]), int(part[-1]) + 1)]


def test_layer_ranges():
    assert layer_ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert layer_ranges([]) == ""
