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
