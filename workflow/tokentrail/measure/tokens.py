"""How the tokenizer cuts each prompt."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.weights.tokenizer import Tokenizer


def measure(tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `tokens`. Raises PromptError for an empty prompt or one that the tokenizer rewrites."""
    rows = []
    for name, prompt in settings["prompts"].items():
        tokenizer.encode(prompt["text"])  # refuses an empty prompt
        for position, piece in enumerate(tokenizer.pieces(prompt["text"])):
            rows.append({"prompt": name, "position": position} | piece.__dict__)
    return pl.DataFrame(rows).with_columns(model=pl.lit(settings["model"]), bos_policy=pl.lit(tokenizer.bos_policy))
