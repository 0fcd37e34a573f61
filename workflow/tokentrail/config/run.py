"""The configuration of a run as a whole, read and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, create_model, model_validator

from tokentrail.config.models import SOURCES, Model, Prompt
from tokentrail.declare.settings import InputPath, Name, Section, Text
from tokentrail.errors import ConfigError
from tokentrail.rooms import rooms

Stages = create_model(
    "Stages",
    __base__=Section,
    __doc__="Settings of the stages.",
    **{
        name: (room.settings, Field(default=room.settings(), description=room.about))
        for name, room in rooms().items()
        if room.settings.model_fields
    },
)


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
    memory_mb: int = Field(default=2048, ge=16)
    """Largest working memory of one batch of interventions, or of one timed case, beside the model itself."""
    ledgers: list[InputPath] = []
    """Published figures to hold the run against: CSV files, one row a figure; `config/README.md` says how."""
    lock_file: Text = "config/weights.lock.json"
    """Hashes of unpinned files, recorded on first use and held since; commit it with a paper."""

    @model_validator(mode="after")
    def check(self):
        for stage, settings in self.stages:
            for key, names in settings.named_prompts().items():
                for prompt in names:
                    if prompt not in self.prompts:
                        raise ValueError(f"stages.{stage}.{key} names {prompt!r}, which is not under `prompts`")
            settings.check_against(self)
        return self

    def prompts_named(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """These prompts as plain data."""
        return {name: self.prompts[name].model_dump() for name in names}


def parse(raw: dict[str, Any]) -> Config:
    """The typed configuration. Raises ConfigError with one sentence for the first mistake found."""
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(explain(error)) from None


EXPONENT = re.compile(r"[+-]?[0-9.]+[eE][+-]?[0-9]+")
KEY = "[key]"
"""What pydantic adds to a place in the configuration where it means the key of a mapping and not its value."""


def explain(error: ValidationError) -> str:
    """The first mistake as one sentence: the key, the value, the remedy."""
    mistakes = error.errors()
    first = mistakes[0]
    loc = first["loc"]
    where = [str(part) for i, part in enumerate(loc) if not (part in SOURCES and i and loc[i - 1] == "source")]
    key, value = ".".join(where) or "the configuration", first["input"]
    more = f" ({len(mistakes) - 1} more after it)" if len(mistakes) > 1 else ""
    match first["type"]:
        case "extra_forbidden":
            return f"unknown key {key} in the configuration; remove it or correct its spelling{more}"
        case "missing":
            return f"the configuration lacks the key {key}; add it{more}"
        case "value_error":
            return f"{key}: {first['ctx']['error']}{more}"
        case "string_type" | "literal_error" | "invalid_key" if not isinstance(value, str | list | dict):
            mapping = ".".join(where[:-2] if where[-1] == KEY else where[:-1]) or "the configuration"
            is_key = where[-1] == KEY or first["type"] == "invalid_key"
            stands = f"{mapping} has the key {shown(value)}" if is_key else f"{key} is {shown(value)}"
            return f"{stands}, but it must be text; {unquoted(value)}{more}"
        case _:
            return f"{key} is {shown(value)}, but {first['msg'][0].lower()}{first['msg'][1:]}{hint(first)}{more}"


def shown(value: Any) -> str:
    """A value of the configuration as it was read, cut to a length that fits a sentence."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def unquoted(value: Any) -> str:
    """Why YAML made something else than text of what was written, and the remedy."""
    match value:
        case None:
            return "YAML reads an empty place, ~ and null as nothing: write the text, in quotes"
        case bool():
            words = "yes, on and true" if value else "no, off and false"
            return f"YAML reads {words} without quotes as {shown(value)}: put the word in quotes"
        case int() | float():
            return f"YAML reads digits without quotes (1998, 1.50, 12:30) as a number, here {value}: put them in quotes"
        case date():
            return f"YAML reads a date without quotes as one, here {value}: put it in quotes"
    return "put it in quotes"


def hint(mistake: Any) -> str:
    """What YAML has to do with it where a number is wanted and text was read."""
    if mistake["type"] in ("int_parsing", "float_parsing") and EXPONENT.fullmatch(mistake["input"]):
        return "; YAML reads an exponent without a point and a sign (1e3) as text: write the number out"
    return ""


def load(path: Path) -> Config:
    """The configuration in a YAML file, for scripts that are run by hand."""
    import yaml

    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file at {path}; give one with --config") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8; save it as such") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} holds no mapping of keys to values; start from config/config.yaml")
    return parse(raw)
