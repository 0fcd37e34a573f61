"""How tokens are built from bytes."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import ordered
from tokentrail.charts.text import of_symbols, whole
from tokentrail.wording.words import chip, counted, listed


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model with a byte-level BPE, its words with their tokens, and sentences."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["merges"].filter(pl.col("model") == model)
        if rows.height:
            texts = [of_text(rows.filter(pl.col("prompt") == name)) for name in ordered(rows, "prompt")]
            words = [text for text in texts if text["kind"] == "word"]
            found.append({"index": index, "words": words, "spaces": spaces(words), "ratio": ratio(texts)})
    return found


def of_text(rows: pl.DataFrame) -> dict[str, Any]:
    """One text: its tokens, their ids, and how many merges it took. `rows`: merges, one model and text."""
    ended = rows.filter(pl.col("token_ids") != "")
    symbols = [symbol for said in ended["symbols"] for symbol in said.split(" ")]
    return {
        "name": rows["prompt"][0],
        "kind": rows["kind"][0],
        "bytes": rows["bytes"][0],
        "words": rows["words"][0],
        "merges": rows.filter(pl.col("step") > 0).height,
        "pieces": ended.height,
        "tokens": [of_symbols(symbol) for symbol in symbols],
        "ids": [int(i) for said in ended["token_ids"] for i in said.split(" ")],
    }


def spaces(words: list[dict[str, Any]]) -> Markup:
    """Words that were given with a space before them and without."""
    of = {word["name"]: word for word in words}
    told = [
        Markup("{} is {} and {} is {}").format(chip(name), ids(word), chip(f" {name}"), ids(of[f" {name}"]))
        for name, word in of.items()
        if f" {name}" in of
    ]
    if not told:
        return Markup()
    return Markup("A space before a word belongs to the word: {}.").format(listed(told))


def ids(word: dict[str, Any]) -> str:
    if len(word["ids"]) == 1:
        return f"the token {word['ids'][0]}"
    return "the tokens " + str(listed([str(i) for i in word["ids"]]))


def ratio(texts: list[dict[str, Any]]) -> Markup:
    """Tokens for each word, over the prompts."""
    prompts = [text for text in texts if text["kind"] == "prompt"]
    words, tokens = sum(text["words"] for text in prompts), sum(len(text["ids"]) for text in prompts)
    if not prompts:
        return Markup()
    return Markup("The {} of {} are {}, {} for each word.").format(
        counted(words, "word"), counted(len(prompts), "prompt"), f"{whole(tokens)} tokens", f"{tokens / words:.2f}"
    )
