"""Attention, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from tokentrail.forward.kinds.cell import Cell, Kept, Product
from tokentrail.forward.kinds.norm import Norm
from tokentrail.forward.kinds.rope import Rope

if TYPE_CHECKING:
    from torch import Tensor


class KeyValues(NamedTuple):
    """An attention cell's state: room for `capacity` tokens, filled from the front, written in place."""

    keys: Tensor  # (rows, kv_heads, capacity, head_dim)
    values: Tensor  # (rows, kv_heads, capacity, head_dim)


@dataclass(frozen=True)
class Attention(Cell):
    heads: int
    kv_heads: int
    head_dim: int
    scale: float  # multiplies q @ k
    rope: Rope | None
    qk_norm: Norm | None
    qkv_bias: bool
    out_bias: bool
    partial: int | None = None  # how many channels of a head RoPE turns, the first ones; None: all
    window: int | None = None  # how many keys a query looks at, the last ones, its own included; None: all

    kind = part = "attention"
    mixes = True
    tensors: ClassVar = {
        "qkv": "queries, keys and values",
        "q_norm": "norm of the queries",
        "k_norm": "norm of the keys",
        "out": "attention output",
    }
    matrices = ("qkv", "out")
    output = "out"
    update = "attention update"
    state = KeyValues

    @property
    def rotated(self) -> int:
        """Channels of a head that RoPE turns."""
        return self.partial or self.head_dim

    @property
    def rotation(self) -> tuple[Rope, int, int] | None:
        return None if self.rope is None else (self.rope, self.head_dim, self.rotated)

    def visible_pairs(self, past: int, tokens: int) -> int:
        if self.window is None:
            return tokens * past + tokens * (tokens + 1) // 2
        return sum(min(position + 1, self.window) for position in range(past, past + tokens))

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        rows, inner = (self.heads + 2 * self.kv_heads) * self.head_dim, self.heads * self.head_dim
        out = {"qkv.weight": (rows, width), "out.weight": (width, inner)}
        out |= {"qkv.bias": (rows,)} if self.qkv_bias else {}
        out |= {"out.bias": (width,)} if self.out_bias else {}
        out |= {"q_norm.weight": (self.head_dim,), "k_norm.weight": (self.head_dim,)} if self.qk_norm else {}
        return out

    @property
    def sites(self) -> dict[str, str]:
        done = [word for word, on in (("normalised", self.qk_norm), ("rotated", self.rope)) if on is not None]
        q, k = (f"{name}, {' and '.join(done)}" if done else f"{name} by head" for name in ("queries", "keys"))
        return {
            "qkv": "q, k and v together",
            **({"qk": "queries and keys by head"} if done else {}),
            "q": q,
            "k": k,
            "v": "values by head",
            "scores": "scores",
            "pattern": "attention weights",
            "z": "weighted values",
        }

    def products(self, width: int, tokens: int, pairs: tuple[int, ...]) -> list[Product]:
        inner = self.heads * self.head_dim
        return [
            Product(self.tensors["qkv"], (tokens, width, (self.heads + 2 * self.kv_heads) * self.head_dim)),
            Product("attention scores", (*pairs, inner)),
            Product("attention weights times values", (*pairs, inner)),
            Product(self.tensors["out"], (tokens, inner, width)),
        ]

    def kept(self, tokens: int) -> tuple[Kept, ...]:
        return (keys_and_values(self.kv_heads, self.head_dim, tokens),)

    def activations(self, tokens: int) -> dict[str, tuple[int, ...]]:
        return {"attention weights, one layer": (self.heads, tokens, tokens)}

    def widest(self, tokens: int, pattern: bool) -> int:
        weights = 4 * self.heads * tokens if pattern else 0
        return 3 * (2 * self.heads + 4 * self.kv_heads) * self.head_dim + weights

    @property
    def detail(self) -> str:
        said = [f"{self.heads} query and {self.kv_heads} key/value heads of {self.head_dim}", f"scale {self.scale:.6g}"]
        if self.rope is not None:
            part = f" on {self.partial} channels" if self.partial else ""
            stretched = f", low frequencies stretched {self.rope.scaling.factor:g}x" if self.rope.scaling else ""
            said.append(f"RoPE theta {self.rope.theta:g}{part}{stretched}")
        if self.window is not None:
            said.append(f"each query looks at the last {self.window} keys")
        if self.qk_norm is not None:
            said.append("queries and keys normalised per head")
        if biased := [name for name, bias in (("q, k, v", self.qkv_bias), ("output", self.out_bias)) if bias]:
            said.append("biases on " + " and ".join(biased))
        return "; ".join(said)


def keys_and_values(kv_heads: int, head_dim: int, tokens: int) -> Kept:
    return Kept("kv", (kv_heads, tokens, head_dim), tensors=2)
