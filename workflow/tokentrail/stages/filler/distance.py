"""The name at growing distance: head, n fillers, tail, as token ids, with the place of the name in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tokentrail.errors import PromptError
from tokentrail.measure.asked import asked
from tokentrail.measure.notes import log_notes
from tokentrail.weights.load import Loaded


@dataclass(frozen=True)
class Stretched:
    filler: str
    repeats: int
    ids: Tensor  # (1, tokens)
    name: tuple[int, ...]  # positions of the name's pieces
    target: int  # id of the name's first piece as the answer
    fits: bool  # whether the model has positions for all tokens

    @property
    def distance(self) -> int:
        """Tokens from the name's last piece to the last token."""
        return self.ids.shape[1] - 1 - self.name[-1]

    @property
    def about(self) -> dict[str, Any]:
        """What every table says of the input."""
        return {
            "filler": self.filler,
            "repeats": self.repeats,
            "tokens": self.ids.shape[1],
            "distance": self.distance,
        }


def inputs(loaded: Loaded, settings: dict[str, Any]) -> tuple[list[list[Stretched]], list[dict[str, Any]]]:
    """For each filler, its inputs from the shortest to the longest, and a row with the reason for each that is none."""
    found: list[list[Stretched]] = []
    refused: list[dict[str, Any]] = []
    for filler, paragraph in settings["fillers"].items():
        series = []
        for repeats in sorted(set(settings["repeats"])):
            with asked(refused, filler=filler, repeats=repeats):
                series.append(stretched(loaded, settings, filler, paragraph, repeats))
        found.append(series)
    return found, refused


def stretched(loaded: Loaded, settings: dict[str, Any], filler: str, paragraph: str, repeats: int) -> Stretched:
    text = " ".join([settings["head"], *[paragraph] * repeats, settings["tail"]])
    ids = loaded.tokenizer.encode(text)
    spec = loaded.model.spec
    log_notes(loaded.tokenizer, spec.trained_positions, f"{filler} x {repeats}", text, settings["target"])
    room = spec.learned_positions
    return Stretched(
        filler=filler,
        repeats=repeats,
        ids=torch.tensor([ids], device=loaded.device),
        name=name_positions(loaded, text, settings["target"]),
        target=loaded.tokenizer.following(text, settings["target"])[0],
        fits=room is None or len(ids) <= room,
    )


def name_positions(loaded: Loaded, text: str, name: str) -> tuple[int, ...]:
    """Positions of the tokens that cover the first place where `name` stands in `text`."""
    start = f" {text}".encode().index(name.encode()) - 1
    span = range(max(start, 0), start + len(name.encode()))
    pieces = enumerate(loaded.tokenizer.pieces(text))
    found = tuple(i for i, p in pieces if not p.special and p.byte_start < span.stop and p.byte_end > span.start)
    if not found:
        raise PromptError(f"the target {name!r} covers no token of the filler head; write it as it stands there")
    return found
