"""From named tensors to a model: the names and shapes that every cell expects, and the model made of them.

The names are ours, not a checkpoint's: `tokens`, `positions`, `layers.3.mixer.qkv.weight`, `final_norm.weight`,
`head.weight`. A family says which checkpoint tensors each is made from.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cells import attention, ffn, mamba2, norm
from tokentrail.forward.cells.linear import BlockedLinear, Linear, blocked
from tokentrail.forward.frame import LayerWeights, Model

CELL_SHAPES = {specs.Attention: attention.shapes, specs.Mamba2: mamba2.shapes}


def shapes(spec: specs.Spec) -> dict[str, tuple[int, ...]]:
    """Every tensor that the model needs, by our name, with its shape."""
    out: dict[str, tuple[int, ...]] = {"tokens": (spec.vocabulary, spec.width)}
    if spec.learned_positions is not None:
        out["positions"] = (spec.learned_positions, spec.width)
    for i, layer in enumerate(spec.layers):
        parts = {
            "mixer_norm": norm.shapes(spec.norm, spec.width),
            "mixer": CELL_SHAPES[type(layer.mixer)](layer.mixer, spec.width),
            "ffn_norm": norm.shapes(spec.norm, spec.width),
            "ffn": ffn.shapes(layer.ffn, spec.width),
        }
        out |= {f"layers.{i}.{part}.{name}": s for part, inner in parts.items() for name, s in inner.items()}
    out |= {f"final_norm.{name}": s for name, s in norm.shapes(spec.norm, spec.width).items()}
    if not spec.tied:
        out["head.weight"] = (spec.vocabulary, spec.width)
    return out


def assemble(
    spec: specs.Spec, tensor: Callable[[str], Tensor | None], block: bool = False, decode: bool = False
) -> Model:
    """The model whose tensors `tensor(name)` gives, None for those it does not have.

    `block` lays the layers' float32 CPU matrices out for oneDNN, one at a time (see cells/linear.py). `decode` keeps
    the plain matrices too, and blocks the head as well: as fast as can be for any number of rows, at twice the memory.
    """

    def linear(name: str) -> Linear | BlockedLinear:
        plain = Linear(tensor(f"{name}.weight"), tensor(f"{name}.bias"))
        return blocked(plain, keep=decode) if block or decode else plain

    def norm_weights(name: str) -> norm.NormWeights | None:
        weight = tensor(f"{name}.weight")
        return None if weight is None else norm.NormWeights(weight, tensor(f"{name}.bias"))

    def qk_norm(name: str, cell: specs.Attention) -> norm.NormWeights | None:
        if cell.qk_norm is None:
            return None
        by_head = [(tensor(f"{name}.q_norm.weight"), cell.heads), (tensor(f"{name}.k_norm.weight"), cell.kv_heads)]
        return norm.NormWeights(torch.cat([weight.expand(heads, 1, -1) for weight, heads in by_head]), bias=None)

    def mixer(name: str, cell: specs.Attention | specs.Mamba2):
        if isinstance(cell, specs.Attention):
            return attention.AttentionWeights(
                qkv=linear(f"{name}.qkv"),
                out=linear(f"{name}.out"),
                qk_norm=qk_norm(name, cell),
            )
        return mamba2.Mamba2Weights(
            in_proj=linear(f"{name}.in_proj"),
            conv=Linear(tensor(f"{name}.conv.weight").t().contiguous(), tensor(f"{name}.conv.bias")),
            dt_bias=tensor(f"{name}.dt_bias"),
            A_log=tensor(f"{name}.A_log"),
            D=tensor(f"{name}.D"),
            norm=tensor(f"{name}.norm"),
            out_proj=linear(f"{name}.out_proj"),
        )

    tokens = tensor("tokens")
    layers = tuple(
        LayerWeights(
            mixer_norm=norm_weights(f"layers.{i}.mixer_norm"),
            mixer=mixer(f"layers.{i}.mixer", layer.mixer),
            ffn_norm=norm_weights(f"layers.{i}.ffn_norm"),
            ffn=ffn.FfnWeights(up=linear(f"layers.{i}.ffn.up"), down=linear(f"layers.{i}.ffn.down")),
        )
        for i, layer in enumerate(spec.layers)
    )
    head = Linear(tokens if spec.tied else tensor("head.weight"))
    return Model(
        spec=spec,
        tokens=tokens,
        positions=tensor("positions"),
        layers=layers,
        final_norm=norm_weights("final_norm"),
        head=blocked(head, keep=True) if decode else head,
    )
