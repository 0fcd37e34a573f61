"""Prompts as tensors, checked against the model before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tokentrail.errors import PromptError
from tokentrail.weights.load import Loaded


@dataclass(frozen=True)
class Encoded:
    name: str
    text: str
    ids: Tensor  # (1, tokens)
    target: int  # id of the target's first piece


def encoded(loaded: Loaded, settings: dict[str, Any]) -> list[Encoded]:
    """All prompts of a stage. Raises PromptError, naming the prompt, before any of them runs."""
    return [encode(loaded, name, prompt["text"], prompt["target"]) for name, prompt in settings["prompts"].items()]


def encode(loaded: Loaded, name: str, text: str, target: str) -> Encoded:
    ids = loaded.tokenizer.encode(text)
    check_fits(loaded, name, len(ids))
    ids = torch.tensor([ids], device=loaded.device)
    return Encoded(name, text, ids, loaded.tokenizer.following(text, target)[0])


def check_fits(loaded: Loaded, name: str, tokens: int) -> None:
    room = loaded.model.spec.learned_positions
    if room is not None and tokens > room:
        raise PromptError(
            f"prompt {name} has {tokens} tokens, but {loaded.tokenizer.model} has {room} positions; "
            f"shorten it or leave the model out"
        )
