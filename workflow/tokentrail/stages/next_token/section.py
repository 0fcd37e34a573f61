"""What comes after each prompt, in sentences."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import probability, whole
from tokentrail.wording.words import (
    chip,
    every,
    with_probability,
)


def answer(rows: pl.DataFrame) -> Markup:
    """What one model says after one prompt, and where the target stands. `rows`: next_token, one model and prompt."""
    if rows.is_empty():
        return Markup()
    rows = rows.sort("rank")
    first = rows.row(0, named=True)
    targets = rows.filter("is_target")
    target = targets.row(0, named=True) if targets.height else None
    opening = Markup("It continues with {} {}").format(chip(first["token"]), with_probability(first["probability"]))
    if target is None:
        return opening + "."
    if target["rank"] == 0:
        opening += ", the token that was expected"
        if rows.height == 1:
            return opening + "."
        second = rows.row(1, named=True)
        if second["probability"] == first["probability"]:
            return opening + Markup("; {} is exactly as probable.").format(chip(second["token"]))
        return opening + Markup("; next is {} at {}.").format(chip(second["token"]), probability(second["probability"]))
    if target["probability"] == first["probability"]:
        return opening + Markup(", and the expected {} is exactly as probable.").format(chip(target["token"]))
    return opening + Markup(", not with the expected {}, which has rank {} (0 is the first) and {}.").format(
        chip(target["token"]), whole(target["rank"]), with_probability(target["probability"]).removeprefix("with ")
    )


def hits(rows: pl.DataFrame) -> Markup:
    """For how many prompts the target is first. `rows`: next_token, one model; empty for fewer than two prompts."""
    prompts = rows["prompt"].n_unique()
    if prompts < 2:
        return Markup()
    first = rows.filter(pl.col("is_target") & (pl.col("rank") == 0))["prompt"].n_unique()
    which = {0: f"none of the {whole(prompts)} prompts", prompts: every(prompts, "prompt")}
    return Markup("The expected token comes first after {}.").format(
        which.get(first, f"{whole(first)} of the {whole(prompts)} prompts")
    )
