"""How the tokenizer cuts each prompt."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.forward.families import read_spec
from tokentrail.measure.prompts import log_notes
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.tokenizer import Tokenizer


def measure(checkpoint: Checkpoint, tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `tokens`. Raises PromptError for a prompt that is empty, that the tokenizer rewrites, or without a row."""
    context = read_spec(checkpoint.config).trained_positions
    rows = []
    for name, prompt in settings["prompts"].items():
        note = {"note": log_notes(tokenizer, context, name, prompt["text"], prompt["target"])}
        for position, piece in enumerate(tokenizer.pieces(prompt["text"])):
            rows.append({"prompt": name, "position": position} | piece.__dict__ | note)
    return pl.DataFrame(rows).with_columns(model=pl.lit(settings["model"]), bos_policy=pl.lit(tokenizer.bos_policy))
