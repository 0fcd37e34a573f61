"""Qwen3 (Qwen team 2025): Llama's frame with queries and keys normalised per head before they are rotated."""

from __future__ import annotations

from typing import Any

from tokentrail.forward.families import llama
from tokentrail.forward.reading.config_reader import ConfigReader
from tokentrail.forward.spec import Spec


def read(config: dict[str, Any]) -> Spec:
    c = ConfigReader(config)
    c.whole("head_dim")  # not hidden_size / heads in this family, so it must be stated
    bias = c.flag("attention_bias")
    spec = llama.read_rotary(c, qk_norm=True, qkv_bias=bias, out_bias=bias)
    c.done()
    return spec


FAMILY = llama.FAMILY._replace(about=__doc__, model_types=("qwen3",), read=read)
