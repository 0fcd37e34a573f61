"""The published models as a hub has them: their shapes and file layouts, with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import random_models
import torch
from hub_server import Repository
from safetensors.torch import load_file, save_file
from tokentrail.config import Config

SHAPES = {"gpt2": "gpt2", "qwen3-0.6b-base": "qwen3-0.6b", "granite-4.0-h-350m-base": "granite-4.0-h-350m"}
NARROW: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 48, "n_layer": 12, "n_head": 12},
    "qwen3-0.6b-base": {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64},
    "granite-4.0-h-350m-base": {"hidden_size": 48, "shared_intermediate_size": 64, "intermediate_size": 64}
    | {"mamba_n_heads": 12, "mamba_d_head": 8, "mamba_d_state": 16},
}
"""Widths with which the same layers and vocabularies run in a minute."""
MASK = "h.{}.attn.bias"
"""A buffer that GPT-2's checkpoint holds beside its weights."""


def config(model: str, narrow: bool) -> dict[str, Any]:
    return random_models.FULL_SHAPES[SHAPES[model]] | (NARROW[model] if narrow else {})


def upload(model: str, folder: Path, tokenizer: Path, source, narrow: bool) -> Repository:
    """A repository with the files that the model's own has: `source` says under which name and commit."""
    random_models.build(config(model, narrow), folder, seed=len(model))
    path = folder / "model.safetensors"
    save_file(stored(model, load_file(path)), path, metadata={"format": "pt"})
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    files = ("config.json", "model.safetensors", "tokenizer.json")
    return Repository(source.repository, {name: folder / name for name in files}, commit=source.revision)


def stored(model: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """As the checkpoint has them: GPT-2 in float32, without a prefix, with its mask; the others in bfloat16."""
    if model == "gpt2":
        named = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
        layers = {int(name.split(".")[1]) for name in named if name.startswith("h.")}
        mask = torch.ones(1, 1, 1024, 1024).tril()
        return named | {MASK.format(layer): mask.clone() for layer in layers}
    half = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    if model.startswith("qwen3"):  # the head is tied, and stored all the same
        half["lm_head.weight"] = half["model.embed_tokens.weight"].clone()
    return half


def settings(paper: Config, raw: dict[str, Any], repositories: list[Repository]) -> dict[str, Any]:
    """The configuration of the published runs, with the hashes of these weights in the place of the real ones."""
    held = json.loads(json.dumps(raw))
    for name, model in paper.models.items():
        if model.source.sha256:
            repository = next(each for each in repositories if each.name == model.source.repository)
            held["models"][name]["source"]["sha256"] = {"model.safetensors": repository.etags["model.safetensors"]}
    return held
