"""Byte-level BPE, replayed: which symbols are joined, in which order, until the tokenizer's own tokens stand there."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.bytelevel import symbols_of
from tokentrail.errors import PromptError
from tokentrail.measure.asked import asked
from tokentrail.weights.bpe import ByteLevelBpe, byte_level_bpe
from tokentrail.weights.tokenizer import Section, Tokenizer, utf8


def measure(tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `merges`; no rows for a tokenizer that is no byte-level BPE.

    A word is read as it stands inside a text. A token that is looked for in a text before it is cut is a piece without
    merges. A text that the replay cannot read, or whose replay ends in other ids than the tokenizer's own, has a row
    with the reason.
    """
    bpe = byte_level_bpe(tokenizer.inner)
    if bpe is None:
        return tables.frame("merges", [])
    inside = bpe.inside_a_text()
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for word in settings["words"]:
        with asked(refused, prompt=word, kind="word"):
            replayed = checked(word, replay(inside, word), tokenizer.word(word))
            rows += [about("word", word, word) | row for row in replayed]
    for name, prompt in settings["prompts"].items():
        with asked(refused, prompt=name, kind="prompt"):
            rows += [about("prompt", name, prompt["text"]) | row for row in pieces_of(tokenizer, bpe, prompt["text"])]
    return tables.frame("merges", rows, refused, model=settings["model"])


def pieces_of(tokenizer: Tokenizer, bpe: ByteLevelBpe, text: str) -> list[dict[str, Any]]:
    """The steps of every piece of a text, the pieces numbered through its sections."""
    rows: list[dict[str, Any]] = []
    pieces = 0
    for section in tokenizer.sections(text):
        found = whole(section) if section.added else checked(section.text, replay(bpe, section.text), section.ids)
        rows += [row | {"piece": pieces + row["piece"]} for row in found]
        pieces += len({row["piece"] for row in found})
    return rows


def about(kind: str, name: str, text: str) -> dict[str, Any]:
    return {"prompt": name, "kind": kind, "bytes": len(utf8(text)), "words": max(len(text.split()), 1)}


def checked(text: str, replayed: tuple[list[dict[str, Any]], list[int]], own: list[int]) -> list[dict[str, Any]]:
    rows, ids = replayed
    if ids != own:
        raise PromptError(f"the replay of {text[:40]!r} ends in the ids {ids}, but the tokenizer gives {own}")
    return rows


def whole(section: Section) -> list[dict[str, Any]]:
    """The one step of a token that is never merged."""
    row = {"piece": 0, "step": 0, "rank": None, "left": None, "right": None}
    return [row | {"symbols": symbols_of(section.text.encode()), "token_ids": str(section.ids[0])}]


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
