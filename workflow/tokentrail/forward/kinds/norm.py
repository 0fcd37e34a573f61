"""Norms, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Norm:
    kind: Literal["layernorm", "rmsnorm"]
    eps: float

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        return {"weight": (width,)} | ({"bias": (width,)} if self.kind == "layernorm" else {})
