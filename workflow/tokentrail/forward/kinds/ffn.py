"""The feed-forward network, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tokentrail.forward.kinds.cell import Cell, Product


@dataclass(frozen=True)
class Ffn(Cell):
    activation: Literal["gelu", "gelu_tanh", "silu"]  # GELU exact, or in its tanh form
    gated: bool  # the activation of one half of the inner channels multiplies the other half
    width: int
    bias: bool

    part = "ffn"
    mixes = False
    tensors: ClassVar = {"up": "FFN up", "down": "FFN down"}
    matrices = ("up", "down")
    output = "down"
    update = "FFN update"

    @property
    def kind(self) -> str:
        known = {("gelu_tanh", False): "gelu", ("gelu", False): "exact gelu", ("silu", True): "swiglu"}
        name = known.get((self.activation, self.gated))
        return name or (f"gated {self.activation}" if self.gated else self.activation)

    @property
    def rows(self) -> int:
        """Rows of the first matrix."""
        return self.width * (2 if self.gated else 1)

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        out = {"up.weight": (self.rows, width), "down.weight": (width, self.width)}
        return out | ({"up.bias": (self.rows,), "down.bias": (width,)} if self.bias else {})

    @property
    def sites(self) -> dict[str, str]:
        widened = "FFN gate and up together" if self.gated else "FFN widened"
        return {"ffn_up": widened, "ffn_act": "FFN activated"}

    def products(self, width: int, tokens: int, pairs: tuple[int, ...]) -> list[Product]:
        return [
            Product(self.tensors["up"], (tokens, width, self.rows)),
            Product(self.tensors["down"], (tokens, self.width, width)),
        ]

    def activations(self, tokens: int) -> dict[str, tuple[int, ...]]:
        return {"FFN, one layer": (tokens, self.width)}

    def widest(self, tokens: int, pattern: bool) -> int:
        return 4 * self.width

    @property
    def detail(self) -> str:
        return f"inner width {self.width}{', biases' if self.bias else ''}"
