"""What `positions` is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from tokentrail.declare.settings import PromptsStage


class PositionsStage(PromptsStage):
    """How position enters."""

    pairs: list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]] = [
        [17, 5],
        [112, 100],
        [17, 16],
    ]
    """Positions of a query and of a key that is not after it, whose score is taken."""
    seed: int = 0
    """Seed of the random query and key."""

    @model_validator(mode="after")
    def check(self):
        for query, key in self.pairs:
            if key > query:
                raise ValueError(f"the pair [{query}, {key}] has its key after its query; give the later one first")
        return self
