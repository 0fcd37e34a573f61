"""Mamba2, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from tokentrail.forward.kinds.cell import Cell, Kept, Product

if TYPE_CHECKING:
    from torch import Tensor


class MambaState(NamedTuple):
    """A Mamba2 cell's state: of one size however many tokens it has read."""

    window: Tensor  # (rows, conv_width - 1, conv_channels): the convolution's last inputs
    ssm: Tensor  # (rows, heads, head_dim, state_size)


@dataclass(frozen=True)
class Mamba2(Cell):
    heads: int
    head_dim: int
    groups: int
    state_size: int
    conv_width: int
    conv_bias: bool
    proj_bias: bool
    dt_min: float
    dt_max: float
    eps: float  # of the gated norm

    kind = part = "mamba2"
    mixes = True
    tensors: ClassVar = {
        "in_proj": "Mamba2 input projection",
        "conv": "Mamba2 convolution",
        "dt_bias": "Mamba2 step bias",
        "A_log": "Mamba2 decay",
        "D": "Mamba2 skip",
        "norm": "Mamba2 gated norm",
        "out_proj": "Mamba2 output projection",
    }
    matrices = ("in_proj", "out_proj")
    output = "out_proj"
    update = "Mamba2 update"
    state = MambaState

    @property
    def inner(self) -> int:
        return self.heads * self.head_dim

    @property
    def conv_channels(self) -> int:
        return self.inner + 2 * self.groups * self.state_size

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        rows = self.inner + self.conv_channels + self.heads
        out = {"in_proj.weight": (rows, width), "conv.weight": (self.conv_channels, self.conv_width)}
        out |= {"dt_bias": (self.heads,), "A_log": (self.heads,), "D": (self.heads,)}
        out |= {"norm": (self.inner,), "out_proj.weight": (width, self.inner)}
        out |= {"conv.bias": (self.conv_channels,)} if self.conv_bias else {}
        out |= {"in_proj.bias": (rows,), "out_proj.bias": (width,)} if self.proj_bias else {}
        return out

    @property
    def sites(self) -> dict[str, str]:
        return {
            "in_proj": "gate, x, B, C, dt together",
            "gate": "gate",
            "conv_in": "x, B and C",
            "conv_out": "convolution and SiLU",
            "ssm_x": "x by head",
            "B": "B",
            "C": "C",
            "dt": "step sizes",
            "pattern": "the recurrence unrolled",
            "ssm_state": "state after the last token",
            "ssm_y": "state read, plus the skip",
            "gated": "gated",
            "z": "after the gated norm",
        }

    def products(self, width: int, tokens: int, pairs: tuple[int, ...]) -> list[Product]:
        """The recurrence in its step form; fading the state is no product of matrices, and is not counted."""
        state = self.inner * self.state_size
        return [
            Product(self.tensors["in_proj"], (tokens, width, self.inner + self.conv_channels + self.heads)),
            Product(self.tensors["conv"], (tokens, self.conv_channels, self.conv_width)),
            Product("Mamba2 state, written", (tokens, state)),
            Product("Mamba2 state, read", (tokens, state)),
            Product(self.tensors["out_proj"], (tokens, self.inner, width)),
        ]

    def kept(self, tokens: int) -> tuple[Kept, ...]:
        """The same, however many tokens it has read."""
        window = (self.conv_width - 1, self.conv_channels)
        return Kept("conv", window), Kept("state", (self.heads, self.head_dim, self.state_size), wide=True)

    def widest(self, tokens: int, pattern: bool) -> int:
        matrix = 4 * self.heads * (tokens if pattern else min(tokens, 64))
        states = 3 * self.inner * self.state_size // max(tokens, 1)
        return 8 * self.inner + 4 * self.conv_channels + matrix + states

    @property
    def detail(self) -> str:
        free = (self.dt_min, self.dt_max) == (0.0, float("inf"))
        limits = "" if free else f"; dt in [{self.dt_min:g}, {self.dt_max:g}]"
        return (
            f"{self.heads} heads of {self.head_dim}, state {self.state_size}, "
            f"{self.groups} {'group' if self.groups == 1 else 'groups'}, convolution {self.conv_width}{limits}"
        )
