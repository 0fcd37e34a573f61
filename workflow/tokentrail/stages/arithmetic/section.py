"""Sizes and work, by arithmetic."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import binary_bytes, operations, whole
from tokentrail.wording.words import counted, listed


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> dict[str, Any]:
    """For each model, its parts, payloads, and sentences on cache and operations; and the hypothetical models."""
    arithmetic = tables["arithmetic"]
    models = []
    for index, model in enumerate(settings["models"]):
        rows = arithmetic.filter((pl.col("model") == model) & (pl.col("subject") == "model"))
        if rows.height:
            counted_there = tables["census"].filter(pl.col("model") == model)["counted_parameters"].sum()
            models.append(
                {
                    "index": index,
                    "parts": parts(rows),
                    "payloads": rows.filter(pl.col("quantity") == "payload").to_dicts(),
                    "said": Markup(" ").join(filter(None, [agrees(rows, counted_there), cache(rows), work(rows)])),
                }
            )
    first = arithmetic.filter(pl.col("model") == pl.col("model").first(), pl.col("subject") != "model")
    return {"models": models, "hypothetical": first.to_dicts()}


def parts(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Parameters of each part. `rows`: arithmetic, one model."""
    counts = rows.filter(pl.col("quantity") == "parameters")
    total = counts.filter(pl.col("part") == "all")["value"].sum()
    return counts.with_columns(share=pl.col("value") / total).to_dicts()


def agrees(rows: pl.DataFrame, stored: int) -> Markup:
    """Whether the shapes add up to what the checkpoint stores. `stored`: the census' total, 0 without a census."""
    total = rows.filter((pl.col("quantity") == "parameters") & (pl.col("part") == "all"))["value"][0]
    if not stored:
        return Markup("Its shapes make {} parameters.").format(whole(total))
    if total == stored:
        return Markup("Its shapes make {} parameters, exactly those that the checkpoint stores.").format(whole(total))
    return Markup("Its shapes make {} parameters, but the checkpoint stores {}.").format(whole(total), whole(stored))


def cache(rows: pl.DataFrame) -> Markup:
    """What is kept between tokens, by length, for the smallest batch. `rows`: arithmetic, one model."""
    kept = rows.filter(pl.col("quantity") == "cache")
    kept = kept.filter(pl.col("rows") == pl.col("rows").min())
    if kept.is_empty():
        return Markup()
    by_length = kept.group_by("tokens", maintain_order=True).agg(pl.col("value").sum())
    told = [f"{binary_bytes(value)} after {counted(tokens, 'token')}" for tokens, value in by_length.iter_rows()]
    sentence = Markup("For one sequence in float32 it keeps {}").format(listed(told))
    if by_length.height > 1 and by_length["value"].n_unique() == 1:
        return sentence + ": the state has one size however long the text."
    return sentence + "."


def work(rows: pl.DataFrame) -> Markup:
    """Operations of a pass, by length. `rows`: arithmetic, one model."""
    flops = rows.filter((pl.col("quantity") == "flops") & (pl.col("part") == "all"))
    flops = flops.filter(pl.col("rows") == pl.col("rows").min())
    if flops.is_empty():
        return Markup()
    told = [
        f"{operations(all_of)} for {counted(tokens, 'token')} ({operations(all_of // tokens)} each)"
        for tokens, all_of in flops.select("tokens", "value").iter_rows()
    ]
    return Markup("A pass takes {}.").format(listed(told))
