"""How the tokenizer cuts each prompt."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.forward.families import read_spec
from tokentrail.measure.asked import asked
from tokentrail.measure.notes import log_notes
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.tokenizer import Tokenizer


def measure(checkpoint: Checkpoint, tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `tokens`. A prompt that is empty, that the tokenizer rewrites or without a row has one with the reason."""
    context = read_spec(checkpoint.config).trained_positions
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for name, prompt in settings["prompts"].items():
        with asked(refused, prompt=name):
            note = {"note": log_notes(tokenizer, context, name, prompt["text"], prompt["target"])}
            pieces = tokenizer.pieces(prompt["text"])
            rows += [{"prompt": name, "position": at} | vars(piece) | note for at, piece in enumerate(pieces)]
    return tables.frame("tokens", rows, refused, model=settings["model"], bos_policy=tokenizer.bos_policy)
