"""What Granite 4.0 is tested with."""

from __future__ import annotations

import math
from dataclasses import replace

from planting import Fault, cells, specs
from tokentrail.forward.spec import Attention, Layer, Mamba2, Rope

from families.cases import SMALL, Cases

GRANITE = SMALL | {
    "model_type": "granitemoehybrid",
    "hidden_act": "silu",
    "hidden_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "shared_intermediate_size": 64,
    "intermediate_size": 64,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "layer_types": ["mamba", "attention", "mamba", "attention"],
    "position_embedding_type": "nope",
    "rope_theta": 10000.0,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.246,
    "attention_multiplier": 0.2,
    "logits_scaling": 3.0,
    "attention_bias": False,
    "mamba_n_heads": 12,
    "mamba_n_groups": 1,
    "mamba_d_state": 16,
    "mamba_d_head": 8,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 8,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
NEW_SPELLING = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]


def unscaled(name: str):
    """Every update of the sub-layer `name` without its multiplier."""

    def layer(of: Layer) -> Layer:
        steps = ((replace(sub, scale=1.0) if sub.name == name else sub for sub in step) for step in of.steps)
        return Layer(tuple(map(tuple, steps)))

    return specs(lambda spec: replace(spec, layers=tuple(map(layer, spec.layers))))


def in_version_4(config: dict) -> dict:
    kinds = {"linear_attention": "mamba", "full_attention": "attention"}
    old = config | {"layer_types": [kinds[kind] for kind in config["layer_types"]]}
    return old if math.isfinite(old["time_step_limit"][1]) else {k: v for k, v in old.items() if k != "time_step_limit"}


CASES = Cases(
    in_version_4=in_version_4,
    variants={
        "granite-nope": GRANITE,
        "granite-rope": GRANITE | {"position_embedding_type": "rope"},
        "granite-two-groups": GRANITE | {"mamba_n_groups": 2, "attention_bias": True},
        "granite-new-spelling": GRANITE | {"layer_types": NEW_SPELLING},
        "granite-biases": GRANITE | {"mamba_proj_bias": True, "mamba_conv_bias": False, "tie_word_embeddings": True},
        "granite-dt-limits": GRANITE | {"time_step_limit": [0.001, 0.1]},
        "granite-dense": GRANITE | {"layer_types": ["attention"] * 4, "position_embedding_type": "rope"},
        "granite-mamba-only": GRANITE | {"layer_types": ["mamba"] * 4},
    },
    full_shapes={
        "granite-4.0-h-350m": GRANITE
        | {
            "vocab_size": 100352,
            "hidden_size": 768,
            "num_hidden_layers": 32,
            "num_attention_heads": 12,
            "num_key_value_heads": 4,
            "shared_intermediate_size": 2048,
            "intermediate_size": 2048,
            "max_position_embeddings": 32768,
            "layer_types": ["attention" if i in (10, 13, 17, 27) else "mamba" for i in range(32)],
            "attention_multiplier": 0.015625,
            "mamba_n_heads": 48,
            "mamba_d_state": 128,
            "mamba_d_head": 32,
            "mamba_chunk_size": 256,
            "tie_word_embeddings": True,
        },
    },
    faults=[
        Fault(
            "rotation where there is none", "granite-nope", cells(Attention, lambda c: replace(c, rope=Rope(10000.0)))
        ),
        Fault("no rotation where there is one", "granite-rope", cells(Attention, lambda c: replace(c, rope=None))),
        Fault("scale forgotten", "granite-nope", cells(Attention, lambda c: replace(c, scale=1.0))),
        Fault(
            "dt limits ignored", "granite-dt-limits", cells(Mamba2, lambda c: replace(c, dt_min=0.0, dt_max=math.inf))
        ),
        Fault("embedding multiplier forgotten", "granite-nope", specs(lambda spec: replace(spec, embedding_scale=1.0))),
        Fault("residual multiplier forgotten on the mixer", "granite-nope", unscaled("mixer")),
        Fault("residual multiplier forgotten on the FFN", "granite-nope", unscaled("ffn")),
        Fault(
            "logits multiplied, not divided",
            "granite-nope",
            specs(lambda spec: replace(spec, logit_divisor=1 / spec.logit_divisor)),
        ),
    ],
    refused=[
        Fault("layer kinds in reverse", "granite-nope", specs(lambda spec: replace(spec, layers=spec.layers[::-1])))
    ],
)
