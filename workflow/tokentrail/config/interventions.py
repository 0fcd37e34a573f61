"""Settings of the stages that switch off, put in place and lengthen."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tokentrail.config.section import Name, PromptsStage, Section, Text


class AblationsStage(PromptsStage):
    """Switching parts off and swapping them."""

    operations: list[Literal["zero", "mean", "resample"]] = ["zero", "mean", "resample"]
    """How a part is switched off: nothing in its place, its mean over `references`, or its value on another prompt."""
    references: list[Name] = []
    """Prompts that `mean` is taken over; all of them if not given."""
    resample_from: dict[Name, Name] = {}
    """For `resample`: the prompt, of equal token length, that a prompt's values come from."""


class FillerStage(Section):
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


class Pair(Section):
    """Two prompts of equal token length that differ in one name."""

    prompt: Name
    """Prompt that is run."""
    source: Name
    """Prompt whose values are put in place."""


class PatchingStage(Section):
    """Interchange between two prompts."""

    pairs: list[Pair] = []
    """Pairs of prompts."""
    sites: list[Literal["resid_pre", "mixer_out", "ffn_out", "ssm_state"]] = [
        "resid_pre",
        "mixer_out",
        "ffn_out",
        "ssm_state",
    ]
    """Sites to put values in place at; `ssm_state` applies to Mamba2 layers alone."""


class SinkStage(PromptsStage):
    """What position 0 is needed for."""

    replacement: Text = "A"
    """Text whose first token replaces the first token."""
