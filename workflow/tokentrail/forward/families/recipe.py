"""How a tensor of ours is made from stored ones."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Recipe(NamedTuple):
    """Stored tensors, each turned as `turn` says, then joined along their rows."""

    parts: tuple[str, ...]
    turn: Literal["as stored", "transpose", "squeeze"] = "as stored"  # squeeze: drop a middle axis of size 1


def prefixed(stored: set[str], prefixes: tuple[str, ...], probe: str) -> str:
    """The one of `prefixes` under which the checkpoint stores `probe`."""
    return next((p for p in prefixes if p + probe in stored), prefixes[0])
