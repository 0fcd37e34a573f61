"""Which parts speak for the target, directly."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS, attributed
from tokentrail.charts.text import printable, signed
from tokentrail.report.words import chip, listed


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model and prompt, sums by kind of part, and the largest layer and head."""
    rows = attributed(tables["attribution"])
    found = []
    for index, model in enumerate(settings["models"]):
        of_model = rows.filter(pl.col("model") == model)
        for prompt in of_model["prompt"].unique(maintain_order=True):
            here = of_model.filter(pl.col("prompt") == prompt)
            found.append(
                {
                    "index": index,
                    "prompt": printable(prompt),
                    "target": here["target_token"][0],
                    "rival": here["rival_token"][0],
                    "sums": sums(here),
                    "total": here["difference"].sum(),
                    "said": said(here),
                }
            )
    return found


def sums(rows: pl.DataFrame) -> dict[str, float | None]:
    """What each kind of part adds; None for a kind that the model lacks."""
    of = {
        "embedding": pl.col("site") == "embed",
        **{kind: pl.col("mixer") == kind for kind in MIXERS},
        "ffn": pl.col("site") == "ffn_out",
        "bias": pl.col("site") == "final_norm_bias",
    }
    return {
        kind: here["difference"].sum() if (here := rows.filter(condition)).height else None
        for kind, condition in of.items()
    }


def said(rows: pl.DataFrame) -> Markup:
    """Sums and largest parts in words. `rows`: attribution with differences, one model and prompt."""
    if rows.is_empty():
        return Markup()
    added = sums(rows)
    names = {"embedding": "the embedding adds", "attention": "attention", "mamba2": "Mamba2", "ffn": "the FFNs"}
    names["bias"] = "the bias of the last norm"
    kinds = [f"{names[kind]} {signed(value)}" for kind, value in added.items() if value is not None]
    total = rows["difference"].sum()
    sentence = Markup("The logit of {} is {} {} than that of {}: {}.").format(
        chip(rows["target_token"][0]),
        f"{abs(total):.2f}",
        "higher" if total >= 0 else "lower",
        chip(rows["rival_token"][0]),
        listed(kinds),
    )
    layers = (
        rows.filter(pl.col("site").is_in(["z", "mixer_bias", "ffn_out"]))
        .with_columns(part=pl.when(pl.col("site") == "ffn_out").then(pl.lit("FFN")).otherwise(pl.col("mixer")))
        .group_by("part", "layer", maintain_order=True)
        .agg(pl.col("difference").sum())
        .sort(pl.col("difference").neg(), "layer")
    )
    heads = rows.filter(pl.col("site") == "z").sort(pl.col("difference").neg(), "layer", "head")
    if layers.height:
        part, layer, difference = layers.row(0)
        sentence += Markup(" The {} of layer {} adds most for the target, {}").format(
            f"{MIXERS[part]} mixer" if part in MIXERS else part, layer, signed(difference)
        )
        if heads.height:
            head = heads.row(0, named=True)
            sentence += Markup("; of single heads, head {} of layer {}, {}").format(
                head["head"], head["layer"], signed(head["difference"])
            )
        sentence += "."
    return sentence
