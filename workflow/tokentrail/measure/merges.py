"""Byte-level BPE, replayed: which symbols are joined, in which order, until the tokenizer's own tokens stand there."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.errors import PromptError
from tokentrail.measure.asked import asked
from tokentrail.weights.bpe import ByteLevelBpe, byte_level_bpe
from tokentrail.weights.tokenizer import Tokenizer, utf8


def measure(tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `merges`; no rows for a tokenizer that is no byte-level BPE.

    A text that the replay cannot read, or whose replay ends in other ids than the tokenizer's own, has a row with the
    reason.
    """
    bpe = byte_level_bpe(tokenizer.inner)
    if bpe is None:
        return tables.frame("merges", [])
    texts = [("word", word, word) for word in settings["words"]]
    texts += [("prompt", name, prompt["text"]) for name, prompt in settings["prompts"].items()]
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for kind, name, text in texts:
        with asked(refused, prompt=name, kind=kind):
            same = {"prompt": name, "kind": kind, "bytes": len(utf8(text)), "words": max(len(text.split()), 1)}
            replayed, ids = replay(bpe, text)
            if ids != (own := tokenizer.following("", text)):
                raise PromptError(f"the replay of {text[:40]!r} ends in the ids {ids}, but the tokenizer gives {own}")
            rows += [same | row for row in replayed]
    return tables.frame("merges", rows, refused, model=settings["model"])


def replay(bpe: ByteLevelBpe, text: str) -> tuple[list[dict[str, Any]], list[int]]:
    """The steps of all pieces of a text, and the ids that they end in."""
    rows, ids = [], []
    for piece, symbols in enumerate(bpe.pieces(text)):
        steps = list(bpe.steps(symbols))
        ending = bpe.ids(steps[-1].symbols)
        ids += ending
        rows += [
            {
                "piece": piece,
                "step": number,
                "rank": step.rank,
                "left": step.left,
                "right": step.right,
                "symbols": " ".join(step.symbols),
                "token_ids": " ".join(map(str, ending)) if step is steps[-1] else "",
            }
            for number, step in enumerate(steps)
        ]
    return rows, ids
