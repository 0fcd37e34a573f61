"""What a model is made of, as frozen data: the only thing that the frame and the cells read besides weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tokentrail.errors import UnsupportedError
from tokentrail.forward.kinds import KINDS, Attention, Cell, Ffn, Llama3Scaling, Mamba2, Norm, Rope

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


def layer_ranges(layers: list[int]) -> str:
    """`[0, 1, 2, 5]` as `0-2, 5`."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][1] + 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def kind_of(cell: Cell) -> str:
    """The cell's name in tables and charts. Raises UnsupportedError for what is no cell."""
    if not isinstance(cell, Cell):
        raise UnsupportedError(f"{type(cell).__name__} is no kind of cell that is known here")
    return cell.kind


def layers_with(spec: Spec, kind: str) -> tuple[int, ...]:
    """The layers that have a cell of this kind."""
    return tuple(i for i, layer in enumerate(spec.layers) if kind in [kind_of(sub.cell) for sub in layer.sublayers])


def describe(spec: Spec) -> list[dict[str, str]]:
    """The cell table: rows of part, cell, layers, detail, made from the same data that runs."""
    scales = dict.fromkeys(sub.scale for layer in spec.layers for sub in layer.sublayers)
    rows = [
        ("size", "layers", "", str(len(spec.layers))),
        ("size", "width", "", str(spec.width)),
        ("size", "vocabulary", "", str(spec.vocabulary)),
        ("size", "context", "", f"{spec.trained_positions} tokens stated"),
        (
            "embed",
            "token table",
            "",
            f"times {spec.embedding_scale:g}" if spec.embedding_scale != 1 else "as stored",
        ),
        _positions(spec),
        ("norm", spec.norm.kind, "", f"eps {spec.norm.eps:g}"),
        *_other_norms(spec),
        ("residual", "update scale", "", ", ".join(f"{scale:g}" for scale in scales)),
        *_side_by_side(spec),
    ]
    where: dict[str, dict[Cell, list[int]]] = {}
    for index, layer in enumerate(spec.layers):
        for sub in layer.sublayers:
            where.setdefault(sub.name, {}).setdefault(sub.cell, []).append(index)
    rows += [
        (name, cell.kind, layer_ranges(at), cell.detail) for name, cells in where.items() for cell, at in cells.items()
    ]
    divisor = f", logits divided by {spec.logit_divisor:g}" if spec.logit_divisor != 1 else ""
    rows.append(("unembed", "tied to the token table" if spec.tied else "own table", "", f"bare product{divisor}"))
    return [dict(zip(("part", "cell", "layers", "detail"), row, strict=True)) for row in rows]


Row = tuple[str, str, str, str]


def _positions(spec: Spec) -> Row:
    if spec.learned_positions is not None:
        return ("embed", "positions", "", f"learned table of {spec.learned_positions} rows")
    if any(cell.rotation for cell in spec.cells):
        return ("embed", "positions", "", "none added; queries and keys are rotated (RoPE)")
    return ("embed", "positions", "", "none; order reaches the model through Mamba2 alone")


def _other_norms(spec: Spec) -> list[Row]:
    """Norms around sub-layers that are not the last one's like, before the sub-layer."""
    where: dict[tuple[str, str], list[int]] = {}
    for index, layer in enumerate(spec.layers):
        for sub in layer.sublayers:
            for norm, place, usual in ((sub.norm, "before", spec.norm), (sub.norm_after, "after", None)):
                if norm != usual:
                    said = (norm.kind, f"{place} the {sub.name}, eps {norm.eps:g}") if norm else ("none", place)
                    where.setdefault(said, []).append(index)
    return [("norm", kind, layer_ranges(at), detail) for (kind, detail), at in where.items()]


def _side_by_side(spec: Spec) -> list[Row]:
    where: dict[str, list[int]] = {}
    for index, layer in enumerate(spec.layers):
        for step in layer.steps:
            if len(step) > 1:
                where.setdefault(" and ".join(sub.name for sub in step), []).append(index)
    return [
        ("residual", "side by side", layer_ranges(at), f"{names} read the same stream") for names, at in where.items()
    ]
