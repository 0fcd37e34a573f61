"""What stands between the two matrices of an FFN."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import last_position
from tokentrail.charts.text import percent, printable, size
from tokentrail.wording.claims import leading, trailing
from tokentrail.wording.words import at_layers, counted


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, sentences on its last positions and on its extremes anywhere."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["mlp"].filter(pl.col("model") == model)
        if rows.height:
            said = [
                share(rows, "near_zero_fraction", "within 0.01 of zero"),
                share(rows, "negative_fraction", "below zero"),
            ]
            found.append({"index": index, "said": Markup(" ").join([*said, extremes(rows)])})
    return found


def share(rows: pl.DataFrame, column: str, what: str) -> Markup:
    """A share of channels by layer, at last positions, mean over prompts. `rows`: mlp, one model."""
    layers = last_position(rows).group_by("layer").agg(pl.col(column).mean()).sort("layer")
    prompts = rows["prompt"].n_unique()
    over = f" (mean over {counted(prompts, 'prompt')})" if prompts > 1 else ""
    if layers.height == 1:
        return Markup("At the last position, {} of the channels of its one layer are {}{}.").format(
            percent(layers[column][0]), what, over
        )
    low, high = trailing(layers, column), leading(layers, column)
    if low[column][0] == high[column][0]:
        return Markup("At the last position, {} of the channels of every layer are {}{}.").format(
            percent(low[column][0]), what, over
        )
    return Markup("At the last position, between {} ({}) and {} ({}) of the channels are {}{}.").format(
        percent(low[column][0]),
        at_layers(low["layer"].to_list()),
        percent(high[column][0]),
        at_layers(high["layer"].to_list()),
        what,
        over,
    )


def extremes(rows: pl.DataFrame) -> Markup:
    """The largest and the smallest value anywhere. `rows`: mlp, one model."""
    order = ("layer", "position", "prompt")
    most = rows.sort(pl.col("max").neg(), *order).row(0, named=True)
    least = rows.sort("min", *order).row(0, named=True)
    return Markup("Over all positions, the largest value is {} ({}) and the smallest {} ({}).").format(
        size(most["max"]), place(most), size(least["min"]), place(least)
    )


def place(row: dict[str, Any]) -> str:
    return f"layer {row['layer']}, position {row['position']} of {printable(row['prompt'])}"
