"""One layer of each kind, step by step."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS, first_prompt
from tokentrail.charts.text import printable, size

STREAM = ("resid_pre", "resid_mid")


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model and kind of mixer, the steps of the first prompt, and what they say."""
    rows = first_prompt(tables["block"])
    return [
        {
            "index": index,
            "mixer": MIXERS[mixer],
            "layer": here["layer"][0],
            "prompt": printable(here["prompt"][0]),
            "said": norms(here),
            "steps": here.sort("order").to_dicts(),
        }
        for index, model in enumerate(settings["models"])
        for mixer in MIXERS
        for here in [rows.filter((pl.col("model") == model) & (pl.col("mixer") == mixer))]
        if here.height
    ]


def norms(rows: pl.DataFrame) -> Markup:
    """What the norms do at the last position. `rows`: block, one model, kind and prompt."""
    read, told = None, []
    for step in rows.sort("order").to_dicts():
        if step["site"] in STREAM:
            read = step
        elif step["step"].startswith("norm before"):
            told.append(
                f"The {step['step']} takes the root mean square from {size(read['rms'])} to {size(step['rms'])}, the "
                f"mean from {size(read['mean'])} to {size(step['mean'])} and the standard deviation from "
                f"{size(read['deviation'])} to {size(step['deviation'])}, its own weights included."
            )
    return Markup(" ").join(told)
