"""What a model is made of, as frozen data: the only thing that the frame and the cells read besides weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Norm:
    kind: Literal["layernorm", "rmsnorm"]
    eps: float


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
class Attention:
    heads: int
    kv_heads: int
    head_dim: int
    scale: float  # multiplies q @ k
    rope: Rope | None
    qk_norm: Norm | None
    qkv_bias: bool
    out_bias: bool


@dataclass(frozen=True)
class Mamba2:
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

    @property
    def inner(self) -> int:
        return self.heads * self.head_dim

    @property
    def conv_channels(self) -> int:
        return self.inner + 2 * self.groups * self.state_size


@dataclass(frozen=True)
class Ffn:
    kind: Literal["gelu", "swiglu"]
    width: int
    bias: bool


@dataclass(frozen=True)
class Layer:
    mixer: Attention | Mamba2
    ffn: Ffn


@dataclass(frozen=True)
class Spec:
    family: str
    vocabulary: int
    width: int
    layers: tuple[Layer, ...]
    norm: Norm
    learned_positions: int | None  # rows of the position table, or None
    trained_positions: int  # context length that the checkpoint states
    embedding_scale: float
    residual_scale: float
    logit_divisor: float
    tied: bool  # the head is the token table


def layer_ranges(layers: list[int]) -> str:
    """`[0, 1, 2, 5]` as `0-2, 5`."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][1] + 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def kind_of(mixer: Attention | Mamba2) -> str:
    """The mixer's name in tables and charts."""
    return "attention" if isinstance(mixer, Attention) else "mamba2"


def describe(spec: Spec) -> list[dict[str, str]]:
    """The cell table: rows of part, cell, layers, detail, made from the same data that runs."""
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
        ("residual", "update scale", "", f"{spec.residual_scale:g}"),
    ]
    for part in ("mixer", "ffn"):
        where: dict[Attention | Mamba2 | Ffn, list[int]] = {}
        for index, layer in enumerate(spec.layers):
            where.setdefault(getattr(layer, part), []).append(index)
        rows += [(part, *_cell(cell), layer_ranges(at), _detail(cell)) for cell, at in where.items()]
    divisor = f", logits divided by {spec.logit_divisor:g}" if spec.logit_divisor != 1 else ""
    rows.append(("unembed", "tied to the token table" if spec.tied else "own table", "", f"bare product{divisor}"))
    return [dict(zip(("part", "cell", "layers", "detail"), row, strict=True)) for row in rows]


def _positions(spec: Spec) -> tuple[str, str, str, str]:
    if spec.learned_positions is not None:
        return ("embed", "positions", "", f"learned table of {spec.learned_positions} rows")
    ropes = {layer.mixer.rope for layer in spec.layers if isinstance(layer.mixer, Attention)}
    if ropes - {None}:
        return ("embed", "positions", "", "none added; queries and keys are rotated (RoPE)")
    return ("embed", "positions", "", "none; order reaches the model through Mamba2 alone")


def _cell(cell: Attention | Mamba2 | Ffn) -> tuple[str]:
    return (cell.kind if isinstance(cell, Ffn) else kind_of(cell),)


def _detail(cell: Attention | Mamba2 | Ffn) -> str:
    match cell:
        case Attention():
            parts = [f"{cell.heads} query and {cell.kv_heads} key/value heads of {cell.head_dim}"]
            parts.append(f"scale {cell.scale:.6g}")
            if cell.rope is not None:
                stretched = f", low frequencies stretched {cell.rope.scaling.factor:g}x" if cell.rope.scaling else ""
                parts.append(f"RoPE theta {cell.rope.theta:g}{stretched}")
            if cell.qk_norm is not None:
                parts.append("queries and keys normalised per head")
            if cell.qkv_bias or cell.out_bias:
                parts.append(
                    "biases on "
                    + " and ".join(n for n, b in (("q, k, v", cell.qkv_bias), ("output", cell.out_bias)) if b)
                )
            return "; ".join(parts)
        case Mamba2():
            limits = (
                ""
                if (cell.dt_min, cell.dt_max) == (0.0, float("inf"))
                else f"; dt in [{cell.dt_min:g}, {cell.dt_max:g}]"
            )
            return (
                f"{cell.heads} heads of {cell.head_dim}, state {cell.state_size}, "
                f"{cell.groups} {'group' if cell.groups == 1 else 'groups'}, "
                f"convolution {cell.conv_width}{limits}"
            )
        case Ffn():
            return f"inner width {cell.width}{', biases' if cell.bias else ''}"
