"""What one call of a model cannot do without: operations, and bytes read. From the spec alone, nothing is measured."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tokentrail.forward import spec as specs
from tokentrail.forward.assemble import shapes
from tokentrail.forward.cache import formula_bytes


class Work(NamedTuple):
    operations: int  # multiplications and additions of the products, attention and the state's recurrence
    parameter_bytes: int  # all parameters
    least_bytes: int  # weights, keys, values and states that the call must read at least once


def work(spec: specs.Spec, rows: int, past: int, tokens: int, itemsize: int = 4) -> Work:
    """One call that brings `tokens` tokens to each of `rows` rows that have read `past`, and reads the last logits."""
    head = spec.vocabulary * spec.width
    per_token = 2 * sum(layer_products(spec)) + recurrence(spec)
    pairs = tokens * past + tokens * (tokens + 1) // 2  # of a query and a key that it may look at
    operations = rows * (tokens * per_token + 2 * head + attended(spec) * pairs)

    looked_up = {} if spec.tied else {"tokens": rows * tokens}
    looked_up |= {"positions": tokens} if spec.learned_positions is not None else {}
    weights = sum(
        prod(shape) if name not in looked_up else min(looked_up[name], shape[0]) * shape[1]
        for name, shape in shapes(spec).items()
    )
    read = weights * itemsize + rows * formula_bytes(spec, past, itemsize).total
    return Work(operations, parameter_bytes(spec, itemsize), read)


def parameter_bytes(spec: specs.Spec, itemsize: int = 4) -> int:
    """Bytes of all weights; a tied head counts once."""
    return itemsize * sum(prod(shape) for shape in shapes(spec).values())


def layer_products(spec: specs.Spec) -> list[int]:
    """Multiplications that one token costs in the matrices of each layer."""
    matrices = [0] * len(spec.layers)
    for name, shape in shapes(spec).items():
        match name.split("."):
            case ["layers", layer, *_, "weight"] if len(shape) == 2:
                matrices[int(layer)] += prod(shape)
    return matrices


def attended(spec: specs.Spec) -> int:
    """Operations of all attention layers for one query and one key: the score, and the share of the value."""
    mixers = (layer.mixer for layer in spec.layers)
    return sum(4 * mixer.heads * mixer.head_dim for mixer in mixers if isinstance(mixer, specs.Attention))


def recurrence(spec: specs.Spec) -> int:
    """Operations of all Mamba2 states for one token: fade, write (a product and a sum), and read (the same)."""
    mixers = (layer.mixer for layer in spec.layers)
    return sum(5 * mixer.inner * mixer.state_size for mixer in mixers if isinstance(mixer, specs.Mamba2))
