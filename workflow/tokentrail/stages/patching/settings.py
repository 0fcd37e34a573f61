"""What `patching` is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from tokentrail.declare.settings import Configuration, ModelStage, Name, Section


class Pair(Section):
    """Two prompts of equal token length that differ in one name."""

    prompt: Name
    """Prompt that is run."""
    source: Name
    """Prompt whose values are put in place."""


class PatchingStage(ModelStage):
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

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        prompts = config.prompts_named(self.named_prompts()["pairs"])
        return super().given(config, stage, model) | {"prompts": prompts, "memory_mb": config.memory_mb}

    def named_prompts(self) -> dict[str, Iterable[str]]:
        return {"pairs": [name for pair in self.pairs for name in (pair.prompt, pair.source)]}
