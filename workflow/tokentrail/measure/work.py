"""What one call of a model cannot do without: operations, and bytes read. From the spec alone, nothing is measured."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tokentrail.forward import spec as specs
from tokentrail.forward.cache import formula_bytes
from tokentrail.forward.shapes import shapes


class Work(NamedTuple):
    operations: int  # of the products of the cells and the head, as `arithmetic` counts them, without masked pairs
    parameter_bytes: int  # all parameters
    least_bytes: int  # weights, keys, values and states that the call must read at least once


def work(spec: specs.Spec, rows: int, past: int, tokens: int, itemsize: int = 4) -> Work:
    """One call that brings `tokens` tokens to each of `rows` rows that have read `past`, and reads the last logits."""
    operations = rows * (sum(layer_operations(spec, past, tokens)) + 2 * spec.vocabulary * spec.width)

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


def layer_operations(spec: specs.Spec, past: int, tokens: int) -> list[int]:
    """Operations of each layer in one call that brings `tokens` tokens to one row that has read `past`."""

    def of(cell: specs.Cell) -> int:
        products = cell.products(spec.width, tokens, (cell.visible_pairs(past, tokens),))
        return sum(product.operations for product in products)

    return [sum(of(sub.cell) for sub in layer.sublayers) for layer in spec.layers]
