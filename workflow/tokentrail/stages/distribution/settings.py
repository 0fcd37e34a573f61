"""What `distribution` is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from tokentrail.declare.settings import Name, PromptsStage, Section, Text
from tokentrail.templates import places


class Experiment(Section):
    """Prompts that differ in several factors at once, in every combination of their levels."""

    template: Text
    """Text of the prompt, with `{factor}` where the level of each factor goes."""
    target: Text
    """Expected next word, with its leading space, for every combination."""
    factors: dict[Name, dict[Name, str]] = Field(min_length=1)
    """Factors by name, each with two or more levels by name; a level is the text put in, and may be empty."""

    @model_validator(mode="after")
    def check(self):
        for factor, levels in self.factors.items():
            if places(self.template).count(factor) != 1:
                raise ValueError(f"the template must hold {{{factor}}} exactly once")
            if len(levels) < 2:
                raise ValueError(f"the factor {factor!r} has fewer than two levels; add one or drop the factor")
        for place in places(self.template):
            if place not in self.factors:
                raise ValueError(f"the template holds {{{place}}}, which is no factor; add it or take it out")
        return self


class Decoding(Section):
    """Rules that a decoder applies to the logits that are there; each is shown alone."""

    temperatures: list[Annotated[float, Field(gt=0)]] = [0.5, 2.0]
    """Temperatures that the logits are divided by."""
    top_k: list[Annotated[int, Field(ge=1)]] = [5]
    """Numbers of most likely tokens that are kept."""
    top_p: list[Annotated[float, Field(gt=0, le=1)]] = [0.9]
    """Probabilities that the most likely tokens that are kept must reach together."""


class DistributionStage(PromptsStage):
    """The whole distribution, what decoding may make of it, and what narrows it."""

    continue_for: int = Field(default=8, ge=0)
    """Tokens that greedy decoding appends to each prompt."""
    decoding: Decoding = Decoding()
    """What decoding may do without running the model again."""
    experiments: dict[Name, Experiment] = {}
    """Factorial experiments by name."""
