"""Qwen3 (Qwen team 2025): Llama's frame with queries and keys normalised per head before they are rotated."""

from __future__ import annotations

from typing import Any

from tokentrail.forward.families.config_reader import ConfigReader
from tokentrail.forward.families.llama import MODULES, read_rotary, recipes
from tokentrail.forward.spec import Spec

__all__ = ["MODULES", "read", "recipes"]


def read(config: dict[str, Any]) -> Spec:
    c = ConfigReader(config)
    c.whole("head_dim")  # not hidden_size / heads in this family, so it must be stated
    bias = c.flag("attention_bias")
    spec = read_rotary(c, qk_norm=True, qkv_bias=bias, out_bias=bias)
    c.done()
    return spec
