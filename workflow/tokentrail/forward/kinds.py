"""The kinds of cells, as frozen data: the numbers of each, and everything that follows from the numbers alone.

What anyone outside this room wants to know of a cell, the cell says itself; nobody branches on its type. A new kind is
a class here, a function in `cells/`, and a line in `registry.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Norm:
    kind: Literal["layernorm", "rmsnorm"]
    eps: float

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        return {"weight": (width,)} | ({"bias": (width,)} if self.kind == "layernorm" else {})


class Product(NamedTuple):
    """A matrix product of a cell for one row: (M, K) with (K, N) has the factors M, K and N, and 2 M K N operations."""

    part: str
    factors: tuple[int, ...]

    @property
    def operations(self) -> int:
        return 2 * prod(self.factors)


class Kept(NamedTuple):
    """What a cell keeps of one row for the next call: `tensors` of one shape."""

    name: str  # kv, conv or state
    shape: tuple[int, ...]
    tensors: int = 1
    wide: bool = False  # never kept in a half-precision format

    def bytes(self, itemsize: int) -> int:
        return self.tensors * prod(self.shape) * (max(itemsize, 4) if self.wide else itemsize)


class KeyValues(NamedTuple):
    """An attention cell's state: room for `capacity` tokens, filled from the front, written in place."""

    keys: Tensor  # (rows, kv_heads, capacity, head_dim)
    values: Tensor  # (rows, kv_heads, capacity, head_dim)


class MambaState(NamedTuple):
    """A Mamba2 cell's state: of one size however many tokens it has read."""

    window: Tensor  # (rows, conv_width - 1, conv_channels): the convolution's last inputs
    ssm: Tensor  # (rows, heads, head_dim, state_size)


def keys_and_values(kv_heads: int, head_dim: int, tokens: int) -> Kept:
    return Kept("kv", (kv_heads, tokens, head_dim), tensors=2)


class Cell(ABC):
    """What every kind of cell says of itself. `width` is the stream's, `tokens` those of one row."""

    mixes: ClassVar[bool]
    """Whether tokens take something from each other in it: whether it is a mixer, and has heads."""
    part: ClassVar[str]
    """What its tensors are a part of in a census or a quantization scheme: a mixer's kind; `ffn` for every FFN."""
    tensors: ClassVar[dict[str, str]]
    """Its tensors, by name without `.weight` and `.bias`, in words."""
    matrices: ClassVar[tuple[str, ...]]
    """Those that a product reads, and so those that a quantization scheme can be applied to."""
    output: ClassVar[str]
    """The matrix that writes to the stream."""
    update: ClassVar[str]
    """What it adds to the stream, in words."""
    state: ClassVar[type | None] = None
    """The named tuple of the tensors that it keeps, in the order of `kept`; None for a cell without a state."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name in tables and charts."""

    @property
    @abstractmethod
    def detail(self) -> str:
        """Its numbers, in words."""

    @property
    @abstractmethod
    def sites(self) -> dict[str, str]:
        """The sites inside it, in the order of the pass, and what stands there in words."""

    @abstractmethod
    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        """Its tensors by name."""

    @abstractmethod
    def products(self, width: int, tokens: int, pairs: tuple[int, ...]) -> list[Product]:
        """Its products. `pairs`: factors of the number of pairs of a query and a key that are counted."""

    def visible_pairs(self, past: int, tokens: int) -> int:
        """Pairs of one of `tokens` queries after `past` other tokens and a key that it may look at."""
        return 0

    @abstractmethod
    def widest(self, tokens: int, pattern: bool) -> int:
        """An upper estimate of the numbers per token that it holds at once; `pattern`: with its weights explicit."""

    @property
    def rotation(self) -> tuple[Rope, int, int] | None:
        """How queries and keys are rotated, channels of a head, and how many of these are; None without rotation."""
        return None

    def kept(self, tokens: int) -> tuple[Kept, ...]:
        """What it keeps after `tokens` tokens."""
        return ()

    def activations(self, tokens: int) -> dict[str, tuple[int, ...]]:
        """Its largest tensor of a pass in words, with the shape that it has for one row."""
        return {}


@dataclass(frozen=True)
class Llama3Scaling:
    """Stretching of the low rotary frequencies (Llama 3.1)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_positions: int


@dataclass(frozen=True)
class Rope:
    theta: float
    scaling: Llama3Scaling | None = None


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
    tensors = {
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
    tensors = {
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


@dataclass(frozen=True)
class Ffn(Cell):
    activation: Literal["gelu", "gelu_tanh", "silu"]  # GELU exact, or in its tanh form
    gated: bool  # the activation of one half of the inner channels multiplies the other half
    width: int
    bias: bool

    part = "ffn"
    mixes = False
    tensors = {"up": "FFN up", "down": "FFN down"}
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


KINDS = (Attention, Mamba2, Ffn)
