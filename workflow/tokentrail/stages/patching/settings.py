"""DOC"""

from __future__ import annotations

from typing import Literal

from tokentrail.declare.settings import Name, Section


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
