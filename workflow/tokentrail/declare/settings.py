"""What the sections of the configuration are made of."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]


Text = Annotated[str, StringConstraints(min_length=1)]


BRACES = re.compile(r"\{.*\}")


def without_braces(path: str) -> str:
    """A path that is an input of a rule: snakemake has no way to write a brace that is none of its wildcards."""
    if BRACES.search(path):
        raise ValueError(
            f"{path} has braces in it, which snakemake reads as a wildcard; rename it, or give a link without braces"
        )
    return path


InputPath = Annotated[Text, AfterValidator(without_braces)]


Count = Annotated[int, Field(ge=1)]


Share = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


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
