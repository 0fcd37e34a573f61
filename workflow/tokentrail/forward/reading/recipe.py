"""How a tensor of ours is made from stored ones, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Turn(NamedTuple):
    """Another layout of a stored tensor, and the way back from it."""

    ours: Callable[[Tensor], Tensor]
    stored: Callable[[Tensor], Tensor]


AS_STORED = Turn(lambda stored: stored, lambda ours: ours)
TRANSPOSED = Turn(lambda stored: stored.t().contiguous(), lambda ours: ours.t())
SQUEEZED = Turn(lambda stored: stored.squeeze(1), lambda ours: ours[:, None])  # without a middle axis of size 1


class Recipe(NamedTuple):
    """Stored tensors, each turned, then joined along their rows."""

    parts: tuple[str, ...]
    turn: Turn = AS_STORED
    rows: tuple[int, ...] | None = None  # of our tensor, what each part gives; None: all parts the same

    def ours(self, stored: Callable[[str], Tensor]) -> Tensor:
        """Our tensor, made of what `stored` gives by name, in its dtype."""
        parts = [self.turn.ours(stored(name)) for name in self.parts]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def stored(self, ours: Tensor) -> dict[str, Tensor]:
        """The stored tensors by name that give `ours`: the recipe backwards."""
        parts = ours.split(self.rows or len(ours) // len(self.parts))
        return {name: self.turn.stored(part) for name, part in zip(self.parts, parts, strict=True)}


def prefixed(stored: set[str], prefixes: tuple[str, ...], probe: str) -> str:
    """The one of `prefixes` under which the checkpoint stores `probe`."""
    return next((p for p in prefixes if p + probe in stored), prefixes[0])
