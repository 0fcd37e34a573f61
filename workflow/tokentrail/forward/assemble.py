"""From named tensors to a model."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cells.linear import BlockedLinear, Linear, blocked
from tokentrail.forward.cells.norm import NormWeights
from tokentrail.forward.frame import Model, SubLayerWeights
from tokentrail.forward.registry import runs


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
