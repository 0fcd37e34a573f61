"""How the tokenizer cuts each prompt."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.measure.asked import asked
from tokentrail.weights.tokenizer import Tokenizer


def measure(tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `tokens`. A prompt that the tokenizer rewrites has a row with the reason."""
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for name, prompt in settings["prompts"].items():
        with asked(refused, prompt=name):
            tokenizer.encode(prompt["text"])  # refuses an empty prompt
            pieces = tokenizer.pieces(prompt["text"])
            rows += [{"prompt": name, "position": position} | vars(piece) for position, piece in enumerate(pieces)]
    return tables.frame("tokens", rows, refused, model=settings["model"], bos_policy=tokenizer.bos_policy)
