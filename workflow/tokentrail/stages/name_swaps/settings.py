"""What `name_swaps` and `name_swaps_summary` are asked."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from tokentrail.declare.settings import Bootstrap, Configuration, ModelStage, Name, Section, Text


class SwapSet(Section):
    """Templates and the names put into them."""

    templates: dict[Name, Text] = Field(min_length=1)
    """Sentences with `{name}` where the name goes, by template name."""
    names: list[Text] = Field(min_length=1)
    """Names, without a leading space."""

    @model_validator(mode="after")
    def check(self):
        for key, template in self.templates.items():
            if template.count("{name}") != 1:
                raise ValueError(f"template {key!r} must hold {{name}} exactly once")
        if len(set(self.names)) != len(self.names):
            raise ValueError("a name is listed twice")
        return self


class NameSwapsStage(ModelStage):
    """Is the name in the sentence copied, or does the model favour one name?"""

    sets: dict[Name, SwapSet] = {}
    """Swap sets by name."""
    batch: int = Field(default=32, ge=1)
    """Rows in one batch."""
    bootstrap: Bootstrap = Bootstrap()
    """Intervals of the summary."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        own = super().given(config, stage, model)
        bootstrap = own.pop("bootstrap")
        return own if stage == "name_swaps" else {"model": model, "bootstrap": bootstrap}
