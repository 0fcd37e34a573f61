"""What a model is made of, as frozen data: the only thing that the frame and the cells read besides weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tokentrail.errors import UnsupportedError
from tokentrail.forward.kinds import KINDS, Attention, Ffn, Mamba2
from tokentrail.forward.kinds.cell import Cell
from tokentrail.forward.kinds.norm import Norm
from tokentrail.forward.kinds.rope import Llama3Scaling, Rope

__all__ = [
    "KINDS",
    "Attention",
    "Cell",
    "Ffn",
    "Layer",
    "Llama3Scaling",
    "Mamba2",
    "Norm",
    "Rope",
    "Spec",
    "SubLayer",
]


@dataclass(frozen=True)
class SubLayer:
    """One update of the stream x: scale * norm_after(cell(norm(x))), where a norm that is None changes nothing."""

    name: str  # `mixer` or `ffn`: of its tensors, and of the sites before and after it
    cell: Cell
    norm: Norm | None
    norm_after: Norm | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class Layer:
    """Steps, one after the other. The sub-layers of one step stand side by side: all of them read the same stream.

    A mixer and then an FFN are two steps of one sub-layer, the parallel residual of GPT-NeoX one step of two.
    """

    steps: tuple[tuple[SubLayer, ...], ...]

    def __post_init__(self) -> None:
        names = [sub.name for sub in self.sublayers]
        if not 1 <= len(self.steps) <= 2 or not all(self.steps) or len(set(names)) < len(names):
            raise UnsupportedError(
                f"a layer has one or two steps and sub-layers of different names, not {len(self.steps)} steps "
                f"and {', '.join(names) or 'no sub-layers'}; write it as several layers"
            )

    @cached_property
    def sublayers(self) -> tuple[SubLayer, ...]:
        return tuple(sub for step in self.steps for sub in step)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The site of the stream after each step."""
        return ("resid_mid", "resid_post")[-len(self.steps) :]

    @cached_property
    def sites(self) -> dict[str, str]:
        """The sites of the layer, in the order of the pass, and what stands there in words."""
        out = {"resid_pre": "stream entering"}
        for step, stream in zip(self.steps, self.streams, strict=True):
            for sub in step:
                name = sub.name if sub.cell.mixes else "FFN"
                read = f"norm before the {name}" if sub.norm else f"read by the {name}"
                out |= {f"{sub.name}_in": read} | sub.cell.sites | {f"{sub.name}_out": sub.cell.update}
            out[stream] = "stream leaving" if stream == "resid_post" else f"stream after the {name}"
        return out

    @property
    def mixer(self) -> Cell:
        """The one mixer. Raises UnsupportedError for a layer with none or several."""
        return self._only(mixes=True)

    @property
    def ffn(self) -> Cell:
        """The one FFN; raises as `mixer`."""
        return self._only(mixes=False)

    def _only(self, mixes: bool) -> Cell:
        found = [sub.cell for sub in self.sublayers if sub.cell.mixes is mixes]
        if len(found) != 1:
            what = "mixer" if mixes else "FFN"
            raise UnsupportedError(
                f"a layer has {len(found)} cells that are a {what}, and what is asked needs just one"
            )
        return found[0]


def sequential(mixer: Cell, ffn: Cell, norm: Norm, scale: float = 1.0) -> Layer:
    """The usual layer: a mixer and then an FFN, each with a norm before it."""
    return Layer(((SubLayer("mixer", mixer, norm, scale=scale),), (SubLayer("ffn", ffn, norm, scale=scale),)))


@dataclass(frozen=True)
class Spec:
    family: str
    vocabulary: int
    width: int
    layers: tuple[Layer, ...]
    norm: Norm  # the last one, before the head
    learned_positions: int | None  # rows of the position table, or None
    trained_positions: int  # context length that the checkpoint states
    embedding_scale: float
    logit_divisor: float
    tied: bool  # the head is the token table

    @property
    def cells(self) -> list[Cell]:
        """The cells of all layers, in the order of the pass."""
        return [sub.cell for layer in self.layers for sub in layer.sublayers]


def kind_of(cell: Cell) -> str:
    """The cell's name in tables and charts. Raises UnsupportedError for what is no cell."""
    if not isinstance(cell, Cell):
        raise UnsupportedError(f"{type(cell).__name__} is no kind of cell that is known here")
    return cell.kind


def layers_with(spec: Spec, kind: str) -> tuple[int, ...]:
    """The layers that have a cell of this kind."""
    return tuple(i for i, layer in enumerate(spec.layers) if kind in [kind_of(sub.cell) for sub in layer.sublayers])


def layer_ranges(layers: list[int]) -> str:
    """`[0, 1, 2, 5]` as `0-2, 5`."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][1] + 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
