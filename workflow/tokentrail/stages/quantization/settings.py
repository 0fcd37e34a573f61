"""What `quantization_quality`, `quantization_timing`, `quantization` and `quantization_error` are asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tokentrail.declare.settings import Bootstrap, Configuration, InputPath, ModelStage, Name, Section


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
    rounds: int = Field(default=9, ge=1)
    """Rounds; each times every case once, in a shuffled order. From nine on, one slow round widens no interval."""
    seed: int = 0
    """Seed of the shuffling."""


class QuantizationStage(ModelStage):
    """What fewer bits cost in answers and save in bytes and time. Without schemes it is not run."""

    schemes: dict[Name, QuantizationScheme] = {}
    """Schemes by name."""
    models: list[Name] | None = None
    """Models that are quantized; all of them if not given."""
    prompt: Name | None = None
    """Prompt whose answer is compared; the first one if not given."""
    passages: dict[Name, InputPath] = {}
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

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        """What the quality, the times and the errors each use; no schemes for a model that is left out."""
        if stage == "quantization":
            return {"model": model}
        wanted = self.models is None or model in self.models
        schemes = {name: scheme.model_dump() for name, scheme in self.schemes.items() if wanted}
        run_as = ModelStage().given(config, stage, model)
        match stage:
            case "quantization_quality":
                prompts = config.prompts_named([self.prompt or next(iter(config.prompts))])
                read = self.model_dump(include={"passages", "window", "bootstrap"})
                return run_as | {"schemes": schemes, "prompts": prompts} | read
            case "quantization_timing":
                packed = {name: scheme for name, scheme in schemes.items() if scheme["packed"]}
                return run_as | {"schemes": packed} | self.times.model_dump()
        return run_as | {"schemes": {name: schemes[name] for name in self.errors if wanted}}

    def named_prompts(self) -> dict[str, Iterable[str]]:
        return {"prompt": [] if self.prompt is None else [self.prompt]}

    def check_against(self, config: Configuration) -> None:
        for model in self.models or []:
            if model not in config.models:
                raise ValueError(f"stages.quantization.models names {model!r}, which is not under `models`")
