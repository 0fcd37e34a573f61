"""What every kind of cell says of itself, so that nobody who asks has to know which kinds there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from tokentrail.forward.kinds.rope import Rope


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
