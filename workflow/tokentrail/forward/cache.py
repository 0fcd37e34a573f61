"""What a pass leaves behind for the next one: keys and values, convolution windows and SSM states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tokentrail.forward import spec as specs


class KeyValues(NamedTuple):
    """An attention layer's state: room for `capacity` tokens, filled from the front, written in place."""

    keys: Tensor  # (rows, kv_heads, capacity, head_dim)
    values: Tensor  # (rows, kv_heads, capacity, head_dim)


class MambaState(NamedTuple):
    """A Mamba2 layer's state: of one size however many tokens it has read."""

    window: Tensor  # (rows, conv_width - 1, conv_channels): the convolution's last inputs
    ssm: Tensor  # (rows, heads, head_dim, state_size)


@dataclass
class Cache:
    """The states of all layers, and how many tokens each row has read. A pass advances all of it together."""

    states: list[KeyValues | MambaState]
    lengths: Tensor  # (rows), int64
    capacity: int  # tokens that fit
    past: int | None = 0  # the same count when all rows agree, None when they differ

    def fork(self) -> Cache:
        """A cache that goes on from here without disturbing this one, as long as only one of the two is extended
        at a time: keys and values are shared and overwritten from here on, Mamba2's states are never written to.
        """
        return Cache(list(self.states), self.lengths, self.capacity, self.past)

    def repeat(self, rows: int) -> Cache:
        """The one row of this cache as `rows` independent ones."""
        states = [type(state)(*(part.repeat_interleave(rows, dim=0) for part in state)) for state in self.states]
        return Cache(states, self.lengths.repeat(rows), self.capacity, self.past)


def new_cache(
    spec: specs.Spec,
    rows: int,
    capacity: int,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Cache:
    """An empty cache for `rows` sequences of at most `capacity` tokens."""
    like = {"dtype": dtype, "device": device}
    states: list[KeyValues | MambaState] = []
    for layer in spec.layers:
        match layer.mixer:
            case specs.Attention(kv_heads=kv_heads, head_dim=head_dim):
                shape = (rows, kv_heads, capacity, head_dim)
                states.append(KeyValues(torch.zeros(shape, **like), torch.zeros(shape, **like)))
            case specs.Mamba2():
                states.append(empty_mamba_state(layer.mixer, rows, **like))
    return Cache(states, torch.zeros(rows, dtype=torch.int64, device=device), capacity)


def empty_mamba_state(spec: specs.Mamba2, rows: int, dtype: torch.dtype, device: str | torch.device) -> MambaState:
    """The state before the first token. The SSM state is never kept in a half-precision format."""
    wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    return MambaState(
        torch.zeros(rows, spec.conv_width - 1, spec.conv_channels, dtype=dtype, device=device),
        torch.zeros(rows, spec.heads, spec.head_dim, spec.state_size, dtype=wide, device=device),
    )


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
    for each in cache.states:
        match each:
            case KeyValues(keys, values):
                kv += keys[row, :, :tokens].nbytes + values[row, :, :tokens].nbytes
            case MambaState(window, ssm):
                conv, state = conv + window[row].nbytes, state + ssm[row].nbytes
    return CacheBytes(kv, conv, state)


def formula_bytes(spec: specs.Spec, tokens: int, itemsize: int = 4) -> CacheBytes:
    """What one row that has read `tokens` tokens must hold, from the numbers of the spec alone.

    A token takes 2 kv_heads head_dim numbers in every attention layer. A Mamba2 layer takes (conv_width - 1)
    conv_channels for its window and heads head_dim state_size for its state, the latter in float32 at least.
    """
    per_token = windows = states = 0
    for layer in spec.layers:
        match layer.mixer:
            case specs.Attention(kv_heads=kv_heads, head_dim=head_dim):
                per_token += 2 * kv_heads * head_dim
            case specs.Mamba2() as cell:
                windows += (cell.conv_width - 1) * cell.conv_channels
                states += cell.inner * cell.state_size
    return CacheBytes(per_token * tokens * itemsize, windows * itemsize, states * max(itemsize, 4))
