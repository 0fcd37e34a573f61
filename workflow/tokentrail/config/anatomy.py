"""Settings of the stages that take tokens, positions and layers apart."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from tokentrail.config.section import Name, PromptsStage, Section, Text


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
