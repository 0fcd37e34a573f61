"""What `ablations` is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from tokentrail.declare.settings import Configuration, Name, PromptsStage


class AblationsStage(PromptsStage):
    """Switching parts off and swapping them."""

    operations: list[Literal["zero", "mean", "resample"]] = ["zero", "mean", "resample"]
    """How a part is switched off: nothing in its place, its mean over `references`, or its value on another prompt."""
    references: list[Name] = []
    """Prompts that `mean` is taken over; all of them if not given."""
    resample_from: dict[Name, Name] = {}
    """For `resample`: the prompt, of equal token length, that a prompt's values come from."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        """Its prompts, and of the other prompts those that `mean` and `resample` take values from."""
        own = super().given(config, stage, model)
        sources = {prompt: source for prompt, source in self.resample_from.items() if prompt in own["prompts"]}
        references = (self.references or list(config.prompts)) if "mean" in self.operations else []
        others = {name: config.prompts[name].text for name in (*references, *sources.values())}
        return own | {
            "references": references,
            "resample_from": sources,
            "texts": others,
            "memory_mb": config.memory_mb,
        }

    def named_prompts(self) -> dict[str, Iterable[str]]:
        resampled = [*self.resample_from, *self.resample_from.values()]
        return super().named_prompts() | {"references": self.references, "resample_from": resampled}

    def check_against(self, config: Configuration) -> None:
        if "operations" not in self.model_fields_set or "resample" not in self.operations:
            return
        for prompt in self.prompts or config.prompts:
            if prompt not in self.resample_from:
                raise ValueError(
                    f"stages.ablations.operations asks to resample, but stages.ablations.resample_from does not "
                    f"say from which prompt {prompt!r} takes its values"
                )
