"""A model of ours as what is timed: a decode step and a prefill, each set up before the clock starts."""

from __future__ import annotations

import torch
from torch import Tensor

from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import Model, forward, last
from tokentrail.measure.rounds import Prepare


class Ours:
    name, cannot = "tokentrail", ""

    def __init__(self, model: Model):
        self.model = model

    def decode(self, ids: Tensor, steps: int) -> Prepare:
        cache = self.room(ids, steps)
        forward(self.model, ids, cache, read=last(ids))
        token = ids[:, -1:]

        def prepare():
            here = cache.fork()  # every measurement starts at the same length
            return lambda: [forward(self.model, token, here) for _ in range(steps)]

        return prepare

    def prefill(self, ids: Tensor) -> Prepare:
        return lambda: lambda: forward(self.model, ids, self.room(ids, 0), read=last(ids))

    def room(self, ids: Tensor, steps: int):
        rows, tokens = ids.shape
        return new_cache(self.model.spec, rows, tokens + steps, self.model.tokens.dtype, ids.device)


def random_ids(vocabulary: int, rows: int, tokens: int) -> Tensor:
    """Token ids (rows, tokens), the same in every run: the time of a pass does not depend on what it reads."""
    return torch.randint(0, vocabulary, (rows, tokens), generator=torch.Generator().manual_seed(tokens))
