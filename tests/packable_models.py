"""Random models whose matrices the packed kernels can read: every row a multiple of 32 long."""

from __future__ import annotations

from pathlib import Path

from random_models import VARIANTS, Pair, build

WIDER = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "shared_intermediate_size": 96,
    "mamba_n_heads": 16,
    "n_embd": 64,
    "n_head": 4,
}
PACKABLE = ("gpt2", "llama", "llama-biases", "qwen3-tied-bias", "granite-nope", "granite-biases")


def widened(name: str) -> dict:
    """The config of a variant, in a width that can be packed."""
    return {key: WIDER.get(key, value) for key, value in VARIANTS[name].items()}


def build_packable(name: str, folder: Path) -> Pair:
    return build(widened(name), folder)
