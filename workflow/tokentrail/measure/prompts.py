"""Prompts as tensors, checked against the model before anything runs, and what is to be known of how each is read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from tokentrail.errors import PromptError
from tokentrail.measure.asked import asked
from tokentrail.weights.load import Loaded
from tokentrail.weights.tokenizer import Tokenizer

LOG = logging.getLogger(__name__)


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


def log_notes(tokenizer: Tokenizer, context: int, name: str, text: str, target: str) -> str:
    """What is to be known of how a prompt is read, said in the log as well; "" if nothing is.

    `context` is the number of tokens that the checkpoint states as its context.
    """
    said = "; ".join(notes(tokenizer, context, text, target))
    if said:
        LOG.warning("prompt %s: %s", name, said)
    return said


def notes(tokenizer: Tokenizer, context: int, text: str, target: str) -> Iterator[str]:
    """Whatever makes a text other than it looks, and is measured all the same."""
    ids = tokenizer.encode(text)
    begins = len(list(takewhile(lambda i: i == tokenizer.bos_id, ids)))
    if begins > 1:
        bos = tokenizer.token(ids[0])
        added = "the policy adds one and the text has its own" if tokenizer.prefix else "the text has them"
        yield f"read after {begins} BOS tokens ({bos}): {added}"
    if found := tokenizer.special_in(text):
        yield f"holds {', '.join(map(repr, found))}, which is read as a special token wherever it stands"
    if plain := [name for name in tokenizer.without_id if name in text]:
        yield (
            f"holds {plain[0]!r}, which the tokenizer files name as a token and give no id: it is read as plain text, "
            f"where transformers makes up an id that the model has never seen"
        )
    if tokenizer.rebuilt is not None:
        cls, theirs = tokenizer.rebuilt
        if theirs.encode(text, add_special_tokens=False).ids != ids[len(tokenizer.prefix) :]:
            yield f"cut as tokenizer.json says; transformers takes the rules of its class {cls} and cuts it otherwise"
    if len(ids) > context:
        yield f"{len(ids):,} tokens, beyond the {context:,} that the checkpoint states as its context"
    if text.endswith(" ") and target.startswith(" "):
        yield "the text ends in a space and the target begins with one, so the answer is read after two spaces"
