"""A passage, predicted token by token: what a model says at every position, and how far that is from another's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tokentrail.errors import ConfigError, PromptError
from tokentrail.forward.frame import Model, embed, through_layers, unembed
from tokentrail.forward.place import Place
from tokentrail.measure.answers import log_probabilities
from tokentrail.weights.load import Loaded

AT_ONCE = 128  # positions whose logits are made together
IN_CACHE = 8  # positions that are compared together, in float64


@dataclass(frozen=True)
class Passage:
    """A text as windows of tokens, each read on its own, padded on the right."""

    name: str
    ids: Tensor  # (windows, tokens)
    lengths: Tensor  # (windows)

    @property
    def predicted(self) -> Tensor:
        """(windows, tokens): where the next token is one of the passage's."""
        return torch.arange(self.ids.shape[1], device=self.ids.device) < self.lengths[:, None] - 1

    @property
    def targets(self) -> Tensor:
        """The tokens that are predicted: (positions)."""
        return self.ids.roll(-1, dims=1)[self.predicted]


class Reading(NamedTuple):
    """What one model makes of a passage, against a reference: arrays of one number for each position."""

    nll: np.ndarray
    kl: np.ndarray
    agrees: np.ndarray


class Expected(NamedTuple):
    """What a reference model says at every position of a passage."""

    p: Tensor  # (positions, vocabulary), float32
    negative_entropy: Tensor  # (positions): sum of p log p, with the same p
    top1: Tensor  # (positions)


def open_passage(loaded: Loaded, name: str, path: str, window: int) -> Passage:
    """The passage in a text file, cut into windows of at most `window` tokens and the positions that the model has.

    A BOS token, if the policy adds one, stands before every window. Raises ConfigError for a file that is missing or
    is no text, PromptError for one that this tokenizer makes fewer than two tokens of.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"passage {name} cannot be read from {path}; give the path of a text file in UTF-8") from None
    ids = loaded.tokenizer.encode(text or " ")
    bos = len(loaded.tokenizer.prefix)
    spec = loaded.model.spec
    room = min(window, spec.trained_positions, spec.learned_positions or window) - bos
    cuts = [ids[:bos] + ids[start : start + room] for start in range(bos, len(ids), room)]
    cuts = [cut for cut in cuts if len(cut) > 1]
    if not cuts:
        raise PromptError(f"passage {name} at {path} has no token to predict; give it at least a sentence")
    longest = max(map(len, cuts))
    return Passage(
        name,
        ids=torch.tensor([cut + [0] * (longest - len(cut)) for cut in cuts], device=loaded.device),
        lengths=torch.tensor([len(cut) for cut in cuts], device=loaded.device),
    )


def unreadable(model: str, passage: str, nll: float, vocabulary: int) -> str:
    """Why a passage measures nothing of a model, whose mean nll on it is `nll` nats; empty if it does.

    A model that is worse than a uniform guess does not know the language of the text: what rounding moves there, for
    the worse or for the better, says nothing of its answers.
    """
    if nll <= math.log(vocabulary):
        return ""
    return (
        f"{model} loses {nll:.2f} nats a token on {passage}, more than the {math.log(vocabulary):.2f} of a uniform "
        f"guess over its {vocabulary:,} tokens: it cannot read this text"
    )


def logits(model: Model, passage: Passage) -> Iterator[Tensor]:
    """The logits of the predicted positions, some positions (n, vocabulary) at a time."""
    place = Place(passage.ids, passage.lengths, None)
    stream = through_layers(model, embed(model, passage.ids, place), place)[passage.predicted]  # (positions, width)
    for part in stream.split(AT_ONCE):
        yield unembed(model, part[None])[0]


def expected(model: Model, passage: Passage) -> Expected:
    """What the reference model says of the passage."""
    parts = [said(part) for own in logits(model, passage) for part in own.split(IN_CACHE)]
    return Expected(*(torch.cat(of_parts) for of_parts in zip(*parts, strict=True)))


def said(own: Tensor) -> Expected:
    """own (n, vocabulary): logits of the reference."""
    log_p = log_probabilities(own)
    p = log_p.exp().float()
    return Expected(p, -cross_entropy(p, log_p), own.argmax(dim=-1))


def read(model: Model, passage: Passage, reference: Expected) -> Reading:
    """What `model` says of the passage, beside what the reference says."""
    own = (part for of_model in logits(model, passage) for part in of_model.split(IN_CACHE))
    beside = (t.split(IN_CACHE) for t in (*reference, passage.targets))
    parts = [
        compared(logits, Expected(*of_part), targets) for logits, *of_part, targets in zip(own, *beside, strict=True)
    ]
    return Reading(*(torch.cat(of_parts).cpu().numpy() for of_parts in zip(*parts, strict=True)))


def compared(own: Tensor, reference: Expected, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """own (n, vocabulary) and the tokens that came (n): nll, KL(reference || own), agreement, each (n)."""
    log_q = log_probabilities(own)
    nll = -log_q.gather(1, targets[:, None])[:, 0]
    kl = reference.negative_entropy + cross_entropy(reference.p, log_q)
    return nll, kl, (own.argmax(dim=-1) == reference.top1).double()


def cross_entropy(p: Tensor, log_q: Tensor) -> Tensor:
    """-sum of p log q over the vocabulary, in nats: (n, vocabulary) -> (n)."""
    return -(p * log_q).sum(dim=-1)
