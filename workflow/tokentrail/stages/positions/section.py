"""How position enters each model."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import printable, size
from tokentrail.wording.words import counted, listed, power

NEITHER = Markup(
    "It has neither rotation nor a table of positions. Order reaches it through the causal mask, and through layers "
    "that read their input in order, where it has any."
)


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, what it does with position, in sentences; a model without rows has no position encoding."""
    measured = set(tables["cells"]["model"])
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["positions"].filter(pl.col("model") == model)
        if model in measured:
            said = [rotated(rows), table(rows)] if rows.height else [NEITHER]
            found.append({"index": index, "said": Markup(" ").join(filter(None, said))})
    return found


def rotated(rows: pl.DataFrame) -> Markup:
    """Scores of one random query and key. `rows`: positions, one model."""
    pairs = rows.filter(pl.col("probe") == "rotation").to_dicts()
    plain = rows.filter(pl.col("probe") == "unrotated")["score"].to_list()
    if not pairs:
        return Markup()
    told = [
        f"{size(pair['score'])} at positions {pair['query_position']} and {pair['key_position']}, "
        f"{counted(pair['offset'], 'position')} apart"
        for pair in pairs
    ]
    sentence = Markup(
        "Queries and keys are rotated by their positions. One random pair of them, {} unrotated, scores {}."
    ).format(size(plain[0]), listed(told))
    spans = [group["score"].max() - group["score"].min() for _, group in same_distance(pairs)]
    if spans:
        sentence += Markup(" Scores at equal distance differ by {}.").format(
            "nothing" if max(spans) == 0 else Markup("at most {}, the rounding of float32").format(power(max(spans)))
        )
    return sentence


def same_distance(pairs: list[dict[str, Any]]):
    """Pairs of positions, by distance, where there are several at one."""
    frame = pl.DataFrame(pairs)
    return [(key, group) for key, group in frame.group_by("offset", maintain_order=True) if group.height > 1]


def table(rows: pl.DataFrame) -> Markup:
    """The rows of a position table, and the token rows that they are added to. `rows`: positions, one model."""
    norms = rows.filter(pl.col("probe") == "position_norm").sort("offset")
    if norms.is_empty():
        return Markup()
    longest = norms.sort(pl.col("score").neg(), "offset").row(0, named=True)
    sentence = Markup(
        "A table with a row for each of {} is added to the token rows. Its rows have length {} on average; the "
        "longest, {}, is that of position {}."
    ).format(counted(norms.height, "position"), size(norms["score"].mean()), size(longest["score"]), longest["offset"])
    added = rows.filter(pl.col("probe") == "token_norm").join(
        norms.select("offset", position="score"), on="offset", maintain_order="left"
    )
    for prompt in added["prompt"].unique(maintain_order=True):
        last = added.filter(pl.col("prompt") == prompt).sort("offset").row(-1, named=True)
        longer = "the longer" if last["position"] > last["score"] else "the shorter"
        sentence += Markup(
            " At the last position of {}, {}, the position’s row ({}) is {} of the two; the token’s is {}."
        ).format(printable(prompt), last["offset"], size(last["position"]), longer, size(last["score"]))
    return sentence
