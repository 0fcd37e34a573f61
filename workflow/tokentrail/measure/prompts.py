"""Prompts as tensors, checked against the model before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tokentrail.errors import PromptError
from tokentrail.measure.asked import asked
from tokentrail.weights.load import Loaded


@dataclass(frozen=True)
class Encoded:
    name: str
    text: str
    ids: Tensor  # (1, tokens)
    target: int  # id of the target's first piece


def encoded(loaded: Loaded, settings: dict[str, Any]) -> tuple[list[Encoded], list[dict[str, Any]]]:
    """The prompts of a stage that the model can be asked, and a row with the reason for each of the others."""
    prompts: list[Encoded] = []
    refused: list[dict[str, Any]] = []
    for name, prompt in settings["prompts"].items():
        with asked(refused, prompt=name):
            prompts.append(encode(loaded, name, prompt["text"], prompt["target"]))
    return prompts, refused


def encode(loaded: Loaded, name: str, text: str, target: str) -> Encoded:
    """Raises PromptError for a prompt that the model has no positions for, or a target that is no token of its own."""
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


def check_equal_length(loaded: Loaded, name: str, ids: Tensor, other: str, other_ids: Tensor) -> None:
    if ids.shape != other_ids.shape:
        raise PromptError(
            f"prompts {name} and {other} have {ids.shape[1]} and {other_ids.shape[1]} tokens in "
            f"{loaded.tokenizer.model}, but values can only change places between prompts of equal length; "
            f"choose another pair"
        )
