"""What the sections of the configuration are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]


Text = Annotated[str, StringConstraints(min_length=1)]


Count = Annotated[int, Field(ge=1)]


Share = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=False)


class Bootstrap(Section):
    """Percentile intervals by resampling names."""

    samples: int = Field(default=2000, ge=100)
    """Resamples."""
    level: float = Field(default=0.95, gt=0, lt=1)
    """Level of the interval."""
    seed: int = 0
    """Seed of the resampling."""


class PromptsStage(Section):
    """A stage that runs on some of the prompts."""

    prompts: list[Name] | None = None
    """Prompts to run on; all of them if not given."""
