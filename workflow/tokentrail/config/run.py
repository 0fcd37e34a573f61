"""The configuration of a run as a whole, read and checked."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from tokentrail.config.models import Model, Prompt
from tokentrail.declare.settings import InputPath, Name, PromptsStage, Section, Text
from tokentrail.errors import ConfigError
from tokentrail.stages.ablations.settings import AblationsStage
from tokentrail.stages.arithmetic.settings import ArithmeticStage
from tokentrail.stages.cache.settings import CacheStage
from tokentrail.stages.cost.settings import CostStage
from tokentrail.stages.distribution.settings import DistributionStage
from tokentrail.stages.filler.settings import FillerStage
from tokentrail.stages.geometry.settings import GeometryStage
from tokentrail.stages.merges.settings import MergesStage
from tokentrail.stages.name_swaps.settings import NameSwapsStage
from tokentrail.stages.next_token.settings import NextTokenStage
from tokentrail.stages.parity.settings import ParityStage
from tokentrail.stages.patching.settings import PatchingStage
from tokentrail.stages.positions.settings import PositionsStage
from tokentrail.stages.quantization.settings import QuantizationStage
from tokentrail.stages.sink.settings import SinkStage
from tokentrail.stages.timing.settings import TimingStage


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
    ablations: AblationsStage = AblationsStage()
    """Parts switched off."""
    filler: FillerStage = FillerStage()
    """Distance: the stages `filler_sweep` and `long_range`."""
    patching: PatchingStage = PatchingStage()
    """Interchange between prompts."""
    attribution: PromptsStage = PromptsStage()
    """Direct logit attribution."""
    mixing: PromptsStage = PromptsStage()
    """Attention weights and unrolled Mamba2, in full."""
    attention: PromptsStage = PromptsStage()
    """Every attention head's last row."""
    sink: SinkStage = SinkStage()
    """What position 0 is needed for."""
    cache: CacheStage = CacheStage()
    """Decode with a cache, and the cache's bytes."""
    timing: TimingStage = TimingStage()
    """Decode and prefill times: the stages `timing`, `timing_summary` and `machine`."""
    cost: CostStage = CostStage()
    """Price of a million tokens."""
    quantization: QuantizationStage = QuantizationStage()
    """Quantization: the stages `quantization_quality`, `quantization_timing`, `quantization`, `quantization_error`."""
    distribution: DistributionStage = DistributionStage()
    """The whole distribution."""
    merges: MergesStage = MergesStage()
    """Byte-level BPE, replayed."""
    geometry: GeometryStage = GeometryStage()
    """The token table as vectors."""
    positions: PositionsStage = PositionsStage()
    """How position enters."""
    block: PromptsStage = PromptsStage()
    """One layer, step by step."""
    mlp: PromptsStage = PromptsStage()
    """Inside the FFN."""
    arithmetic: ArithmeticStage = ArithmeticStage()
    """Sizes and work."""


ON_SOME_PROMPTS = (
    "lens",
    "residual",
    "ablations",
    "attribution",
    "mixing",
    "attention",
    "sink",
    "cache",
    "distribution",
    "positions",
    "block",
    "mlp",
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
        ablations, pairs = self.stages.ablations, self.stages.patching.pairs
        named = {f"{stage}.prompts": getattr(self.stages, stage).prompts or [] for stage in ON_SOME_PROMPTS}
        named["ablations.references"] = ablations.references
        named["ablations.resample_from"] = [*ablations.resample_from, *ablations.resample_from.values()]
        named["quantization.prompt"] = [name for name in [self.stages.quantization.prompt] if name is not None]
        named["patching.pairs"] = [name for pair in pairs for name in (pair.prompt, pair.source)]
        for key, names in named.items():
            for prompt in names:
                if prompt not in self.prompts:
                    raise ValueError(f"stages.{key} names {prompt!r}, which is not under `prompts`")
        for model in self.stages.quantization.models or []:
            if model not in self.models:
                raise ValueError(f"stages.quantization.models names {model!r}, which is not under `models`")
        if "operations" in ablations.model_fields_set and "resample" in ablations.operations:
            for prompt in ablations.prompts or self.prompts:
                if prompt not in ablations.resample_from:
                    raise ValueError(
                        f"stages.ablations.operations asks to resample, but stages.ablations.resample_from does not "
                        f"say from which prompt {prompt!r} takes its values"
                    )
        return self


def parse(raw: dict[str, Any]) -> Config:
    """The typed configuration. Raises ConfigError with one sentence for the first mistake found."""
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(explain(error)) from None


EXPONENT = re.compile(r"[+-]?[0-9.]+[eE][+-]?[0-9]+")
KINDS = ("package", "hub", "folder")
KEY = "[key]"
"""What pydantic adds to a place in the configuration where it means the key of a mapping and not its value."""


def explain(error: ValidationError) -> str:
    """The first mistake as one sentence: the key, the value, the remedy."""
    mistakes = error.errors()
    first = mistakes[0]
    loc = first["loc"]
    where = [str(part) for i, part in enumerate(loc) if not (part in KINDS and i and loc[i - 1] == "source")]
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
