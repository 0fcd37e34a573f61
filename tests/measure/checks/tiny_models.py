"""Three tiny random models that differ in what stages go wrong in, with a tokenizer that cuts names into pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import definitions
import tiny_tokenizer
import torch
from random_models import VARIANTS
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import Loaded, load_model
from tokentrail.weights.tokenizer import Tokenizer

NARROW = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}
CONFIGS = {
    # learned positions, biases, LayerNorm, a tied head
    "gpt2": VARIANTS["gpt2"] | {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 64},
    # grouped queries whose heads are not width / heads wide, normalised and rotated
    "qwen3": VARIANTS["qwen3"]
    | NARROW
    | {"num_hidden_layers": 2, "head_dim": 16, "intermediate_size": 64}
    | {"max_position_embeddings": 64},
    # Mamba2 with two groups beside attention, every multiplier, biases, and a BOS token before each text
    "granite": VARIANTS["granite-two-groups"]
    | NARROW
    | {"num_hidden_layers": 4, "layer_types": ["mamba", "attention", "mamba", "mamba"], "mamba_proj_bias": True}
    | {"shared_intermediate_size": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8},
}
VOCABULARY = 330  # so small that `Mirabel` is cut into three pieces and `Paris` into two
PADDING = 8  # rows of the token table that belong to no token

PROMPTS = {
    "mirabel": {
        "text": "In the morning, Mirabel gave Bob a book. Later, Bob gave the book back to",
        "target": " Mirabel",
    },
    "france": {"text": "The capital of France is", "target": " Paris"},
}


def config_of(name: str) -> dict:
    return CONFIGS[name] | {"vocab_size": VOCABULARY + PADDING}


@dataclass
class Tiny:
    """A tiny model as stages take it, and the plain facts that checks start from."""

    name: str
    folder: Path

    @cached_property
    def checkpoint(self) -> Checkpoint:
        files = tuple(sorted(self.folder.glob("*.safetensors")))
        return Checkpoint(self.config, files, tokenizer_file=None, sha256="0" * 64, files={})

    @property
    def config(self) -> dict:
        return {key: value for key, value in config_of(self.name).items() if value is not None}

    @cached_property
    def inner(self):
        return tiny_tokenizer.train(VOCABULARY, bos=self.name == "granite")

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.inner, "tokenizer", "tiny")

    @cached_property
    def loaded(self) -> Loaded:
        """In float64, so that rounding hides nothing and excuses nothing."""
        return self.fresh(torch.float64)

    def fresh(self, dtype: torch.dtype = torch.float32) -> Loaded:
        return Loaded(load_model(self.checkpoint, dtype), self.tokenizer, self.checkpoint, torch.device("cpu"))

    @property
    def model(self):
        return self.loaded.model

    def weights(self) -> dict[str, torch.Tensor]:
        """The stored tensors, by the checkpoint's own names."""
        from safetensors.torch import load_file

        return load_file(self.checkpoint.tensor_files[0])

    @property
    def kinds(self) -> list[str]:
        """The mixer of each layer, from config.json."""
        if self.name == "granite":
            return ["mamba2" if kind == "mamba" else "attention" for kind in self.config["layer_types"]]
        return ["attention"] * len(self.model.layers)

    @property
    def context(self) -> int:
        """The tokens that the checkpoint states as its context."""
        return self.config.get("n_positions") or self.config["max_position_embeddings"]

    @property
    def residual_scale(self) -> float:
        return self.config.get("residual_multiplier", 1.0)

    @property
    def bos(self) -> list[int]:
        return [0] if self.name == "granite" else []

    def ids(self, text: str) -> list[int]:
        return self.bos + self.bare(text)

    def bare(self, text: str) -> list[int]:
        return self.inner.encode(text, add_special_tokens=False).ids

    def after(self, text: str, word: str) -> list[int]:
        """The pieces of a word that follows a text."""
        return self.bare(text + word)[len(self.bare(text)) :]

    def text_of(self, token_id: int) -> str:
        return definitions.text_of(self.inner, token_id)

    def prompts(self, prompts=PROMPTS):
        """Each prompt's name, ids, and the first id of its target."""
        for name, prompt in prompts.items():
            yield name, self.ids(prompt["text"]), self.after(prompt["text"], prompt["target"])[0]

    def settings(self, **more) -> dict:
        return {"model": "tiny", "device": "cpu", "bos": "tokenizer", "prompts": PROMPTS} | more
