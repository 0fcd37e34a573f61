"""What `filler_sweep` and `long_range` are asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from tokentrail.declare.settings import ModelStage, Name, Text


class FillerStage(ModelStage):
    """The name at growing distance: head, n fillers, tail, joined by single spaces. Empty: not run."""

    head: str = ""
    """Sentence with the name in it."""
    tail: str = ""
    """Sentence that asks for the name."""
    target: str = ""
    """The name, with its leading space, as it stands in the head."""
    fillers: dict[Name, Text] = {}
    """Paragraphs to put between head and tail, by name."""
    repeats: list[Annotated[int, Field(ge=0)]] = [0, 1, 4, 16]
    """How often a filler stands there."""

    @model_validator(mode="after")
    def check(self):
        if self.fillers and (not self.head or not self.tail or not self.target):
            raise ValueError("fillers need a head, a tail and a target")
        if self.fillers and self.target not in f" {self.head}":
            raise ValueError(f"the target {self.target!r} does not stand in the head")
        return self
