"""Where the difference between two names is carried."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS
from tokentrail.charts.text import printable, signed
from tokentrail.wording.claims import HALF, leading
from tokentrail.wording.words import chip, listed, plural, ranges

SHOWN = 2
"""Decimals of a move that are shown: what is equal in them is not told apart."""


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model and pair of prompts, where the stream carries the name and which parts move it."""
    rows = tables["patching"]
    found = []
    for index, model in enumerate(settings["models"]):
        of_model = rows.filter(pl.col("model") == model)
        for prompt, source in of_model.select("prompt", "source_prompt").unique(maintain_order=True).iter_rows():
            pair = of_model.filter((pl.col("prompt") == prompt) & (pl.col("source_prompt") == source))
            found.append(
                {
                    "index": index,
                    "prompt": printable(prompt),
                    "source": printable(source),
                    "stream": stream(pair.filter(pl.col("site") == "resid_pre")),
                    "parts": parts(pair),
                }
            )
    return found


def stream(rows: pl.DataFrame) -> Markup:
    """At which tokens, and into which layers, the stream alone moves the answer by half or more."""
    if rows.is_empty():
        return Markup()
    moving = rows.filter(pl.col("recovered") >= HALF).sort("position", "layer")
    if moving.is_empty():
        return Markup("At no single token and layer does the stream move the answer halfway to the other name.")
    by_token = moving.group_by("position", "token", maintain_order=True).agg("layer")
    cases = [
        Markup("{} (position {}) in {} {}").format(chip(token), position, plural("layer", len(layers)), ranges(layers))
        for position, token, layers in by_token.iter_rows()
    ]
    return Markup("The stream into a layer moves the answer at least halfway to the other name at {}.").format(
        listed(cases)
    )


def parts(rows: pl.DataFrame) -> Markup:
    """The largest move by one mixer of each kind, one FFN and one state; a move that rounds to nothing is none."""
    kinds = (
        *(
            (f"{word} layer’s output", rows.filter((pl.col("site") == "mixer_out") & (pl.col("mixer") == kind)))
            for kind, word in MIXERS.items()
        ),
        ("FFN’s output", rows.filter(pl.col("site") == "ffn_out")),
        ("Mamba2 state", rows.filter(pl.col("site") == "ssm_state")),
    )
    measured = [(name, here.with_columns(pl.col("recovered").round(SHOWN))) for name, here in kinds if here.height]
    moving = [(name, leading(here, "recovered")) for name, here in measured if here["recovered"].max() > 0]
    still = [f"one {name}" for name, here in measured if here["recovered"].max() <= 0]
    told = [
        Markup("{} by one {} ({})").format(
            signed(most["recovered"][0]), name, listed([place(row) for row in most.to_dicts()])
        )
        for name, most in moving
    ]
    sentence = Markup()
    if told:
        sentence = Markup("With 1 for all the way, the largest {} {}.").format(
            "move is" if len(told) == 1 else "moves are", listed(told)
        )
    if still:
        opening = " Putting in" if told else "Putting in"
        sentence += Markup("{} {} takes it there by less than 0.01 anywhere.").format(opening, listed(still))
    return sentence


def place(row: dict[str, Any]) -> Markup:
    return Markup("layer {} at {}, position {}").format(row["layer"], chip(row["token"]), row["position"])
