"""What `geometry` is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from tokentrail.declare.settings import ModelStage, Name, Section, Text


class Analogy(Section):
    """A sum of rows of the token table."""

    plus: list[Text] = Field(min_length=1)
    """Words whose rows are added."""
    minus: list[Text] = []
    """Words whose rows are subtracted."""

    @model_validator(mode="after")
    def check(self):
        if both := sorted(set(self.plus) & set(self.minus)):
            raise ValueError(f"{both[0]!r} is both added and subtracted; take it out of one of the two")
        return self


class GeometryStage(ModelStage):
    """Lengths and directions of the rows of the token table."""

    words: list[Text] = []
    """Words whose neighbours are asked for, each with its leading space."""
    pairs: list[Annotated[list[Text], Field(min_length=2, max_length=2)]] = []
    """Pairs of words whose cosine is asked for."""
    analogies: dict[Name, Analogy] = {}
    """Analogies by name."""
    neighbours: int = Field(default=5, ge=1)
    """Nearest rows to list."""
    random: int = Field(default=1000, ge=2)
    """Tokens of the random baseline."""
    seed: int = 0
    """Seed of the random baseline."""
