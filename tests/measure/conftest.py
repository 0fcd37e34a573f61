"""A random model with a tokenizer that reads text, as every measure takes it."""

from __future__ import annotations

import pytest
import tiny_tokenizer
import torch
from random_models import VARIANTS, build
from tokentrail.weights.load import Loaded
from tokentrail.weights.tokenizer import Tokenizer

PROMPTS = {
    "alice": {"text": "In the morning, Alice gave Bob a book. Later, Bob gave the book back to", "target": " Alice"},
    "france": {"text": "The capital of France is", "target": " Paris"},
}


@pytest.fixture(scope="session", params=["gpt2", "qwen3-tied-bias", "granite-nope"])
def loaded(request, tmp_path_factory) -> Loaded:
    inner = tiny_tokenizer.train()
    config = VARIANTS[request.param] | {"vocab_size": inner.get_vocab_size() + 8}  # padded, as many are
    pair = build(config, tmp_path_factory.mktemp("model"))
    return Loaded(pair.ours(), Tokenizer(inner, "tokenizer", "tiny"), pair.checkpoint, torch.device("cpu"))


@pytest.fixture
def settings() -> dict:
    same = {"model": "tiny", "bos": "tokenizer", "device": "cpu", "prompts": PROMPTS, "top_k": 5, "tolerance": 1e-3}
    decoding = {"temperatures": [2.0], "top_k": [5], "top_p": [0.9]}
    return same | {"decoding": decoding, "continue_for": 2, "experiments": {}}
