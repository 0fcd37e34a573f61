"""From named tensors to a model: the names and shapes that every cell expects, and the model made of them.

The names are ours, not a checkpoint's: `tokens`, `positions`, `layers.3.mixer.qkv.weight`, `final_norm.weight`,
`head.weight`. A family says which checkpoint tensors each is made from.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cells.linear import BlockedLinear, Linear, blocked
from tokentrail.forward.cells.norm import NormWeights
from tokentrail.forward.frame import Model, SubLayerWeights
from tokentrail.forward.registry import runs


def shapes(spec: specs.Spec) -> dict[str, tuple[int, ...]]:
    """Every tensor that the model needs, by our name, with its shape."""
    out: dict[str, tuple[int, ...]] = {"tokens": (spec.vocabulary, spec.width)}
    if spec.learned_positions is not None:
        out["positions"] = (spec.learned_positions, spec.width)
    for i, layer in enumerate(spec.layers):
        for sub in layer.sublayers:
            parts = {
                f"{sub.name}_norm": sub.norm.shapes(spec.width) if sub.norm else {},
                sub.name: sub.cell.shapes(spec.width),
                f"{sub.name}_norm_after": sub.norm_after.shapes(spec.width) if sub.norm_after else {},
            }
            out |= {
                f"layers.{i}.{part}.{name}": shape for part, inner in parts.items() for name, shape in inner.items()
            }
    out |= {f"final_norm.{name}": s for name, s in spec.norm.shapes(spec.width).items()}
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

    def norm_weights(name: str) -> NormWeights | None:
        weight = tensor(f"{name}.weight")
        return None if weight is None else NormWeights(weight, tensor(f"{name}.bias"))

    def sublayer(name: str, cell: specs.Cell) -> SubLayerWeights:
        weights = runs(cell).assembled(
            cell, lambda part: tensor(f"{name}.{part}"), lambda part: linear(f"{name}.{part}")
        )
        return SubLayerWeights(weights, norm_weights(f"{name}_norm"), norm_weights(f"{name}_norm_after"))

    tokens = tensor("tokens")
    layers = tuple(
        {sub.name: sublayer(f"layers.{i}.{sub.name}", sub.cell) for sub in layer.sublayers}
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
