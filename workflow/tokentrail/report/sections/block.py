"""One layer of each kind, step by step."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS, first_prompt
from tokentrail.charts.text import printable, size
from tokentrail.report.words import counted, power

NORMS = (("resid_pre", "mixer_in", "first"), ("resid_mid", "ffn_in", "second"))


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model and kind of mixer, the steps of the first prompt, and what they say."""
    everything = tables["block"]
    rows = first_prompt(everything)
    return [
        {
            "index": index,
            "mixer": MIXERS[mixer],
            "layer": here["layer"][0],
            "prompt": printable(here["prompt"][0]),
            "said": agreement(everything.filter((pl.col("model") == model) & (pl.col("mixer") == mixer)))
            + Markup(" ")
            + norms(here),
            "steps": here.sort("order").to_dicts(),
        }
        for index, model in enumerate(settings["models"])
        for mixer in MIXERS
        for here in [rows.filter((pl.col("model") == model) & (pl.col("mixer") == mixer))]
        if here.height
    ]


def agreement(rows: pl.DataFrame) -> Markup:
    """How far the rebuilt layer is from the frame's. `rows`: block, one model and kind, all prompts."""
    compared = rows.drop_nulls("max_abs_diff")
    worst, sites = compared["max_abs_diff"].max(), compared["site"].n_unique()
    where = f"at {counted(sites, 'site')} of {counted(rows['prompt'].n_unique(), 'prompt')}"
    if worst == 0:
        return Markup("Rebuilt from its cells, the layer is bit for bit that of the model’s own pass {}.").format(where)
    return Markup(
        "Rebuilt from its cells, the layer differs from that of the model’s own pass by {} at most, {}."
    ).format(power(worst), where)


def norms(rows: pl.DataFrame) -> Markup:
    """What the two norms do at the last position. `rows`: block, one model, kind and prompt."""
    at = {row["site"]: row for row in rows.to_dicts() if row["site"]}
    told = []
    for before, after, which in NORMS:
        a, b = at[before], at[after]
        told.append(
            f"The {which} norm takes the root mean square from {size(a['rms'])} to {size(b['rms'])}, the mean from "
            f"{size(a['mean'])} to {size(b['mean'])} and the standard deviation from {size(a['deviation'])} to "
            f"{size(b['deviation'])}, its own weights included."
        )
    return Markup(" ".join(told))
