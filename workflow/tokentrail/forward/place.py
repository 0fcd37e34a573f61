"""Where the tokens of one call stand: their positions, what each may look at, and which of them are real."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cache import Cache
from tokentrail.forward.cells.rope import rotation


class Place:
    """Made once for each call and read by every cell.

    ids        (rows, tokens)
    lengths    (rows) real tokens of each row in this call, when rows are padded on the right; None: all are real
    """

    def __init__(self, ids: Tensor, lengths: Tensor | None, cache: Cache | None):
        tokens, device = ids.shape[1], ids.device
        steps = torch.arange(tokens, device=device)
        self.tokens = tokens
        self.lengths = lengths
        self.past = cache.past if cache is not None else 0
        if self.past is None:  # rows have read different numbers of tokens
            before, most = cache.lengths, int(cache.lengths.max())
            self.positions = before[:, None] + steps  # (rows, tokens)
        else:
            before = most = self.past
            self.positions = (before + steps)[None]  # (1, tokens)
        self.keys = most + tokens  # slots of the cache that hold a token or padding after this call
        self.longest = self.keys if lengths is None else int((before + lengths).max())  # real tokens of the longest row
        self._visible: dict[int | None, Tensor] = {}
        self._rotations: dict[tuple[specs.Rope, int, torch.dtype], tuple[Tensor, Tensor]] = {}

    @cached_property
    def real(self) -> Tensor | None:
        """(rows, tokens), False at padding; None when nothing is padded."""
        if self.lengths is None:
            return None
        return torch.arange(self.tokens, device=self.lengths.device) < self.lengths[:, None]

    def visible(self, window: int | None = None) -> Tensor:
        """(1 or rows, 1, tokens, keys): the key slots that each query may look at, those up to its own position.

        Only the last `window` of these, if there is one. Computed once and shared by all layers.
        """
        if window not in self._visible:
            slots = torch.arange(self.keys, device=self.positions.device)
            own = self.positions[:, None, :, None]
            self._visible[window] = slots <= own if window is None else (slots <= own) & (slots > own - window)
        return self._visible[window]

    def rotation(self, rope: specs.Rope, channels: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin for these positions, computed once and shared by all layers."""
        key = (rope, channels, dtype)
        if key not in self._rotations:
            self._rotations[key] = rotation(self.positions, rope, channels, dtype)
        return self._rotations[key]
