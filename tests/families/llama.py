"""What Llama and Qwen2 are tested with."""

from __future__ import annotations

from dataclasses import replace

from planting import Fault, cells, in_order, recipe, recipes
from tokentrail.forward.spec import Attention

from families.cases import SMALL, Cases

ROTARY = SMALL | {
    "hidden_act": "silu",
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
LLAMA = {"model_type": "llama"} | ROTARY
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def rope(**numbers):
    """The cell with other numbers of its rotation."""
    return lambda cell: replace(cell, rope=replace(cell.rope, **numbers))


def blended_the_other_way(cell: Attention) -> Attention:
    scaling = cell.rope.scaling
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    return rope(scaling=replace(scaling, low_freq_factor=high, high_freq_factor=low))(cell)


def scale_of_the_width(cell: Attention) -> Attention:
    """1 / sqrt(width / heads), where a head is not width / heads wide."""
    return replace(cell, scale=(ROTARY["hidden_size"] / cell.heads) ** -0.5)


def in_version_4(config: dict) -> dict:
    return {key: value for key, value in config.items() if key != "layer_types"}


CASES = Cases(
    in_version_4=in_version_4,
    variants={
        "llama": LLAMA,
        "llama-tied": LLAMA | {"tie_word_embeddings": True},
        "llama-multi-head": LLAMA | {"num_key_value_heads": 6},
        "llama-head-dim": LLAMA | {"head_dim": 12},
        "llama-biases": LLAMA | {"attention_bias": True, "mlp_bias": True},
        "llama-theta": LLAMA | {"rope_theta": 500.0},
        "llama3-scaling": LLAMA | {"rope_parameters": LLAMA3, "rope_theta": None},
        "qwen2": {"model_type": "qwen2"} | ROTARY,
    },
    faults=[
        Fault("theta ignored", "llama-theta", cells(Attention, rope(theta=10000.0))),
        Fault("Llama-3 scaling ignored", "llama3-scaling", cells(Attention, rope(scaling=None))),
        Fault("Llama-3 blend reversed", "llama3-scaling", cells(Attention, blended_the_other_way)),
        Fault("scale of the hidden size", "llama-head-dim", cells(Attention, scale_of_the_width)),
        Fault(
            "q, k, v joined in another order",
            "llama-multi-head",
            recipe("llama", "mixer.qkv.weight", in_order(1, 0, 2)),
        ),
        Fault("up before gate", "llama", recipe("llama", "ffn.up.weight", in_order(1, 0))),
        Fault("biases of q, k, v in another order", "qwen2", recipe("qwen2", "mixer.qkv.bias", in_order(0, 2, 1))),
    ],
    refused=[
        Fault(
            "an untied head unread",
            "llama",
            recipes("llama", lambda name, made: {} if name == "head.weight" else {name: made}),
        ),
    ],
)
