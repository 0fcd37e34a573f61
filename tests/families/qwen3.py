"""What Qwen3 is tested with."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from planting import Fault, cells, instead, specs, weights
from tokentrail.forward.cells import attention
from tokentrail.forward.spec import Attention, Spec, sequential

from families.cases import Cases
from families.llama import ROTARY, in_version_4

QWEN3 = {"model_type": "qwen3"} | ROTARY | {"head_dim": 16, "attention_bias": False}


def without_qk_norm(cell: Attention) -> Attention:
    return replace(cell, qk_norm=None)


def without_any_qk_norm(spec: Spec) -> Spec:
    layers = tuple(sequential(without_qk_norm(layer.mixer), layer.ffn, spec.norm) for layer in spec.layers)
    return replace(spec, layers=layers)


def keys_weight_for_all(own: attention.AttentionWeights) -> attention.AttentionWeights:
    weight = own.qk_norm.weight  # of each query head, then of each key head
    return own._replace(qk_norm=own.qk_norm._replace(weight=weight[-1:].expand_as(weight)))


def keys_alone(rotate):
    """The rotation of queries and keys together, which leaves the queries as they are."""
    queries = QWEN3["num_attention_heads"]
    return lambda x, cos, sin: torch.cat([x[:, :queries], rotate(x[:, queries:], cos, sin)], dim=1)


def normalised_after_the_rotation(patch: pytest.MonkeyPatch) -> None:
    norm, rotate, asked = attention.norm, attention.rotate, []
    patch.setattr(attention, "norm", lambda x, *given: asked.append(given) or x)
    patch.setattr(attention, "rotate", lambda x, cos, sin: norm(rotate(x, cos, sin), *asked.pop()))


CASES = Cases(
    in_version_4=in_version_4,
    variants={"qwen3": QWEN3, "qwen3-tied-bias": QWEN3 | {"attention_bias": True, "tie_word_embeddings": True}},
    full_shapes={
        "qwen3-0.6b": QWEN3
        | {
            "vocab_size": 151936,
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
            "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1e6,
            "tie_word_embeddings": True,
        },
    },
    faults=[
        Fault("queries not rotated", "qwen3", instead(attention, "rotate", keys_alone)),
        Fault("qk-norm dropped", "qwen3", cells(Attention, without_qk_norm)),
        Fault("q normalised with k's weight", "qwen3", weights(Attention, keys_weight_for_all)),
        Fault("qk-norm after the rotation", "qwen3", normalised_after_the_rotation),
    ],
    refused=[Fault("a family without its qk-norm", "qwen3", specs(without_any_qk_norm))],
)
