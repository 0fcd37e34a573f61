"""What runs each kind of cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tokentrail.errors import UnsupportedError
from tokentrail.forward import spec as specs
from tokentrail.forward.cells import attention, ffn, mamba2


class Runs(NamedTuple):
    forward: Callable  # (x, weights, cell, state, place, layer, tap) -> (update, state)
    assembled: Callable  # (cell, tensor, linear) -> weights


RUNS = {
    specs.Attention: Runs(attention.attention, attention.assembled),
    specs.Mamba2: Runs(mamba2.mamba2, mamba2.assembled),
    specs.Ffn: Runs(ffn.ffn, ffn.assembled),
}


def runs(cell: specs.Cell) -> Runs:
    """Raises UnsupportedError for a cell that nothing here runs."""
    if type(cell) not in RUNS:
        raise UnsupportedError(f"no cell here runs a {type(cell).__name__}")
    return RUNS[type(cell)]
