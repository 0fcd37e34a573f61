"""What a pass leaves behind for the next one: keys and values, convolution windows and SSM states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.kinds.attention import KeyValues
from tokentrail.forward.kinds.mamba2 import MambaState

State = KeyValues | MambaState | None


@dataclass
class Cache:
    """The states of all cells, and how many tokens each row has read. A pass advances all of it together."""

    states: dict[tuple[int, str], State]  # by layer and name of the sub-layer
    lengths: Tensor  # (rows), int64
    capacity: int  # tokens that fit
    past: int | None = 0  # the same count when all rows agree, None when they differ

    def fork(self) -> Cache:
        """A cache that goes on from here without disturbing this one, as long as only one of the two is extended
        at a time: keys and values are shared and overwritten from here on, Mamba2's states are never written to.
        """
        return Cache(dict(self.states), self.lengths, self.capacity, self.past)

    def repeat(self, rows: int) -> Cache:
        """The one row of this cache as `rows` independent ones."""
        states = {
            place: state and type(state)(*(part.repeat_interleave(rows, dim=0) for part in state))
            for place, state in self.states.items()
        }
        return Cache(states, self.lengths.repeat(rows), self.capacity, self.past)


def new_cache(
    spec: specs.Spec,
    rows: int,
    capacity: int,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Cache:
    """An empty cache for `rows` sequences of at most `capacity` tokens."""
    states = {
        (i, sub.name): new_state(sub.cell, rows, capacity, dtype, device)
        for i, layer in enumerate(spec.layers)
        for sub in layer.sublayers
    }
    return Cache(states, torch.zeros(rows, dtype=torch.int64, device=device), capacity)


def new_state(cell: specs.Cell, rows: int, capacity: int, dtype: torch.dtype, device: str | torch.device) -> State:
    """The state before the first token; None for a cell that keeps nothing."""
    if cell.state is None:
        return None
    wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    parts = (
        torch.zeros(rows, *kept.shape, dtype=wide if kept.wide else dtype, device=device)
        for kept in cell.kept(capacity)
        for _ in range(kept.tensors)
    )
    return cell.state(*parts)


class CacheBytes(NamedTuple):
    """Bytes of the states of some layers, by what they hold."""

    kv: int  # keys and values: grow with every token
    conv: int  # convolution windows: of one size
    state: int  # SSM states: of one size

    @property
    def total(self) -> int:
        return sum(self)


def held_bytes(cache: Cache, row: int) -> CacheBytes:
    """What the tensors of one row hold, without the room that is reserved for more tokens."""
    tokens = int(cache.lengths[row])
    kv = conv = state = 0
    for each in cache.states.values():
        match each:
            case KeyValues(keys, values):
                kv += keys[row, :, :tokens].nbytes + values[row, :, :tokens].nbytes
            case MambaState(window, ssm):
                conv, state = conv + window[row].nbytes, state + ssm[row].nbytes
    return CacheBytes(kv, conv, state)


def formula_bytes(spec: specs.Spec, tokens: int, itemsize: int = 4) -> CacheBytes:
    """What one row that has read `tokens` tokens must hold, from what each cell says that it keeps."""
    sizes = dict.fromkeys(CacheBytes._fields, 0)
    for cell in spec.cells:
        for kept in cell.kept(tokens):
            sizes[kept.name] += kept.bytes(itemsize)
    return CacheBytes(**sizes)
