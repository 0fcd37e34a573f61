"""The embedding tables of a checkpoint, read row by row or in blocks, and never as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from safetensors import safe_open
from torch import Tensor

from tokentrail.forward.families import read_spec, recipes
from tokentrail.weights.checkpoint import Checkpoint

BLOCK = 4096
"""Rows in memory at a time."""


class StoredTable:
    """The table that a model calls `tokens` or `positions`: (rows, width), in its stored dtype on disk."""

    def __init__(self, checkpoint: Checkpoint, name: str):
        made_from, _ = recipes(read_spec(checkpoint.config), set(checkpoint.tensor_names()))
        (self.name,) = made_from[name].parts
        self.file = checkpoint.file_of(self.name)
        self.rows, self.width = checkpoint.shape(self.name)

    def row(self, index: int) -> Tensor:
        """(width), float64."""
        return next(self._read(index, index + 1))[0]

    def blocks(self) -> Iterator[Tensor]:
        """(at most BLOCK, width), float64: all rows in order."""
        return self._read(0, self.rows)

    def norms(self) -> Tensor:
        """Euclidean length of every row: (rows)."""
        return torch.cat([block.norm(dim=1) for block in self.blocks()])

    def products(self, vectors: Tensor) -> Tensor:
        """Dot product of every row with each of vectors (n, width): (rows, n)."""
        return torch.cat([block @ vectors.T for block in self.blocks()])

    def _read(self, first: int, end: int) -> Iterator[Tensor]:
        with safe_open(self.file, framework="pt") as file:
            stored = file.get_slice(self.name)
            for start in range(first, end, BLOCK):
                yield stored[start : min(start + BLOCK, end)].double()
