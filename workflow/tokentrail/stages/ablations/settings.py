"""DOC"""

from __future__ import annotations

from typing import Literal

from tokentrail.declare.settings import Name, PromptsStage


class AblationsStage(PromptsStage):
    """Switching parts off and swapping them."""

    operations: list[Literal["zero", "mean", "resample"]] = ["zero", "mean", "resample"]
    """How a part is switched off: nothing in its place, its mean over `references`, or its value on another prompt."""
    references: list[Name] = []
    """Prompts that `mean` is taken over; all of them if not given."""
    resample_from: dict[Name, Name] = {}
    """For `resample`: the prompt, of equal token length, that a prompt's values come from."""
