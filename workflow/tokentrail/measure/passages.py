"""A passage, predicted token by token: what a model says at every position, and how far that is from another's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tokentrail.errors import PromptError
from tokentrail.forward.frame import Model, embed, through_layers, unembed
from tokentrail.forward.place import Place
from tokentrail.measure.answers import kl_of_rows, log_probabilities
from tokentrail.weights.load import Loaded

AT_ONCE = 128  # positions whose logits are in memory together, in float64


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


def open_passage(loaded: Loaded, name: str, path: str, window: int) -> Passage:
    """The passage in a text file, cut into windows of at most `window` tokens and the positions that the model has.

    A BOS token, if the policy adds one, stands before every window. Raises PromptError for a file that is missing,
    is no text, or has fewer than two tokens.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise PromptError(f"passage {name} cannot be read from {path}; give the path of a text file in UTF-8") from None
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


def logits(model: Model, passage: Passage) -> Iterator[Tensor]:
    """The logits of the predicted positions, some positions (n, vocabulary) at a time."""
    place = Place(passage.ids, passage.lengths, None)
    stream = through_layers(model, embed(model, passage.ids, place), place)[passage.predicted]  # (positions, width)
    for part in stream.split(AT_ONCE):
        yield unembed(model, part[None])[0]


def read(model: Model, passage: Passage, reference: Tensor) -> Reading:
    """What `model` says of the passage, beside the reference's logits (positions, vocabulary)."""
    parts = [
        compared(own, *of_part)
        for own, *of_part in zip(
            logits(model, passage), reference.split(AT_ONCE), passage.targets.split(AT_ONCE), strict=True
        )
    ]
    return Reading(*(torch.cat(of_parts).cpu().numpy() for of_parts in zip(*parts, strict=True)))


def compared(own: Tensor, reference: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of two models (n, vocabulary) and the tokens that came (n): nll, KL(reference || own), agreement."""
    log_p, log_q = log_probabilities(reference), log_probabilities(own)
    nll = -log_q.gather(1, targets[:, None])[:, 0]
    return nll, kl_of_rows(log_p, log_q), (log_p.argmax(-1) == log_q.argmax(-1)).double()
