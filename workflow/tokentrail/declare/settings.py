"""What the sections of the configuration are made of, and what of them a stage is given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Protocol

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


class Configuration(Protocol):
    """What a room's settings may ask of the whole configuration, which is put together from them (`config.run`)."""

    models: dict[str, Any]
    prompts: dict[str, Any]
    stages: Any
    ledgers: list[str]
    device: str
    memory_mb: int
    lock_file: str

    def prompts_named(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The prompts of these names, each with its text and its target."""


class StageSettings(Section):
    """What the configuration may say of a room's stages, under `stages.<room>`; without fields, nothing."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        """Exactly what a stage's script uses of the configuration, as plain dicts, lists and scalars."""
        return {"model": model} | self.model_dump()

    def code(self, config: Configuration, model: str | None) -> list[str]:
        """The modules that a stage's script imports by a name made at run time."""
        return []

    def named_prompts(self) -> dict[str, Iterable[str]]:
        """Prompts that the settings name, by the key that names them, to be held against those that there are."""
        return {}

    def check_against(self, config: Configuration) -> None:
        """Raises ValueError if the settings do not fit the rest of the configuration."""


class ModelStage(StageSettings):
    """A stage that runs a model, or reads text as it does."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        run_as = {"bos": config.models[model].bos, "device": config.device}
        return super().given(config, stage, model) | run_as


class EveryPromptStage(ModelStage):
    """A stage that runs a model on all prompts."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        return super().given(config, stage, model) | {"prompts": config.prompts_named(self.chosen(config))}

    def chosen(self, config: Configuration) -> Iterable[str]:
        return config.prompts


class PromptsStage(EveryPromptStage):
    """A stage that runs a model on some of the prompts."""

    prompts: list[Name] | None = None
    """Prompts to run on; all of them if not given."""

    def chosen(self, config: Configuration) -> Iterable[str]:
        return config.prompts if self.prompts is None else self.prompts

    def named_prompts(self) -> dict[str, Iterable[str]]:
        return {"prompts": self.prompts or []}
