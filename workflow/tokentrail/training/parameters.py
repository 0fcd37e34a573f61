"""The tensors that are trained: under the names and in the shapes of the family's checkpoints, so that saving is all.

Every step assembles the hand-written model from them by the family's own recipes. Renaming, transposing and joining
are differentiable, so the gradients arrive at the stored tensors.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.assemble import assemble
from tokentrail.forward.families import recipes
from tokentrail.forward.frame import Model
from tokentrail.forward.shapes import shapes

STEP_SIZES = (1e-3, 0.1)  # range of Mamba2's first step sizes: Dao and Gu 2024, as in Mamba
DECAY_RATES = (1.0, 16.0)  # range of its first decay rates -A


def initial(spec: specs.Spec, seed: int, embedding_std: float) -> dict[str, Tensor]:
    """Random parameters by stored name, ready for autograd.

    Matrices are normal with variance 1 / inputs; those that write to the stream are divided by sqrt(2 layers), as in
    GPT-2. Norms begin at one, biases at zero.
    """
    generator = torch.Generator().manual_seed(seed)
    made_from, _ = recipes(spec, set())
    parameters = {}
    for name, shape in shapes(spec).items():
        whole = first_values(name, shape, spec, generator, embedding_std)
        parameters |= made_from[name].stored(whole)
    return {name: tensor.contiguous().requires_grad_() for name, tensor in sorted(parameters.items())}


def first_values(
    name: str, shape: tuple[int, ...], spec: specs.Spec, generator: torch.Generator, embedding_std: float
) -> Tensor:
    """First values of one of our tensors."""
    leaf = name.rsplit(".", 2)
    if name in ("tokens", "positions", "head.weight"):
        return torch.randn(shape, generator=generator) * embedding_std
    if leaf[-1] == "A_log":
        return torch.empty(shape).uniform_(*DECAY_RATES, generator=generator).log()
    if leaf[-1] == "dt_bias":  # the inverse of softplus, of step sizes that are uniform in their logarithm
        low, high = (math.log(size) for size in STEP_SIZES)
        size = torch.empty(shape).uniform_(low, high, generator=generator).exp()
        return size + torch.log(-torch.expm1(-size))
    if leaf[-1] in ("D", "norm") or leaf[-2].endswith("norm"):
        return torch.zeros(shape) if leaf[-1] == "bias" else torch.ones(shape)
    if leaf[-1] == "bias":
        return torch.zeros(shape)
    values = torch.randn(shape, generator=generator) * shape[-1] ** -0.5
    return values / math.sqrt(2 * len(spec.layers)) if leaf[-2] in ("out", "out_proj", "down") else values


def model_of(spec: specs.Spec, parameters: dict[str, Tensor]) -> Model:
    """The hand-written model made of the parameters as they are now."""
    made_from, _ = recipes(spec, set(parameters))

    def tensor(name: str) -> Tensor | None:
        return made_from[name].ours(parameters.__getitem__) if name in made_from else None

    return assemble(spec, tensor)
