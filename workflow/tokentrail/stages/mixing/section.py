"""Who takes how much from whom."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS, first_prompt, looking, target_positions
from tokentrail.charts.text import printable, probability, size, whole
from tokentrail.wording.words import counted


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, the heads that look at the target most, and how many look at the first token."""
    mixing = first_prompt(tables["mixing"])
    found = []
    for index, model in enumerate(settings["models"]):
        rows = mixing.filter(pl.col("model") == model)
        if rows.is_empty():
            continue
        prompt = rows["prompt"][0]
        here = (pl.col("model") == model) & (pl.col("prompt") == prompt)
        targets = target_positions(tables["next_token"].filter(here), tables["tokens"].filter(here))
        found.append(
            {
                "index": index,
                "prompt": printable(prompt),
                "chosen": chosen(rows, targets),
                "first": on_first(tables["attention"].filter(here), tables["tokens"].filter(here).height),
            }
        )
    return found


def chosen(rows: pl.DataFrame, targets: list[int]) -> Markup:
    """The heads whose last token takes most from the target. `rows`: mixing, one model and prompt."""
    picked = {row["mixer"]: row for row in looking(rows, targets).to_dicts()}
    what = "the target" if targets else "any token but the first and itself"
    heads = rows.select("mixer", "layer", "head").unique()
    return Markup(" ").join(
        Markup("Of {}, head {} in layer {} has the last token take most from {}: a weight of {}.").format(
            counted(heads.filter(pl.col("mixer") == kind).height, f"{MIXERS[kind]} head"),
            picked[kind]["head"],
            picked[kind]["layer"],
            what,
            probability(picked[kind]["weight"]) if kind == "attention" else size(picked[kind]["weight"]),
        )
        for kind in MIXERS
        if kind in picked
    )


def on_first(rows: pl.DataFrame, positions: int) -> Markup:
    """How many heads put most on the first of so many tokens. `rows`: attention, one model and prompt."""
    if rows.is_empty():
        return Markup()
    first = rows.filter(pl.col("argmax_position") == 0).height
    return Markup(
        "In {} of {} attention heads, the last token’s largest weight lies on the first token; the mean over heads "
        "is {}, where evenly spread attention would put {}."
    ).format(whole(first), whole(rows.height), probability(rows["weight_on_first"].mean()), probability(1 / positions))
