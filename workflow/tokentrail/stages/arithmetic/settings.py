"""What `arithmetic` is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tokentrail.declare.settings import Name, Section, StageSettings


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


class ArithmeticStage(StageSettings):
    """Sizes and work that follow from shapes alone."""

    rows: list[Annotated[int, Field(ge=1)]] = [1, 8]
    """Batch sizes."""
    tokens: list[Annotated[int, Field(ge=1)]] = [8, 128, 1000]
    """Lengths of the input."""
    caches: dict[Name, HypotheticalCache] = {}
    """Hypothetical key/value caches by name."""
    payloads: dict[Name, HypotheticalPayload] = {}
    """Hypothetical payloads by name."""
