"""Which parts speak for the target, directly."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS, attributed
from tokentrail.charts.text import decimals, printable, signed
from tokentrail.wording.claims import leading, rival_probability
from tokentrail.wording.words import chip, listed, with_probability

SHOWN = 2
"""Decimals of a contribution that are shown: what is equal in them is not told apart."""


READINGS = {"difference": "target minus rival", "target_logit_contribution": "target alone"}
"""What a contribution is to: the difference of two logits, or one logit."""
LIKELY = 0.01
"""Of a rival that is less probable than this, a difference says more than of the answer."""


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model and prompt, sums by kind of part, and the largest layer and head, by both readings."""
    rows = attributed(tables["attribution"])
    found = []
    for index, model in enumerate(settings["models"]):
        of_model = rows.filter(pl.col("model") == model)
        for prompt in of_model["prompt"].unique(maintain_order=True):
            here = of_model.filter(pl.col("prompt") == prompt)
            answers = tables["next_token"].filter(pl.col("model") == model, pl.col("prompt") == prompt)
            found.append(
                {
                    "index": index,
                    "prompt": printable(prompt),
                    "target": here["target_token"][0],
                    "rival": here["rival_token"][0],
                    "readings": [
                        {"name": name, "sums": sums(here, column), "total": here[column].sum()}
                        for column, name in READINGS.items()
                    ],
                    "said": said(here, rival_probability(here, answers)),
                }
            )
    return found


def sums(rows: pl.DataFrame, column: str) -> dict[str, float | None]:
    """What each kind of part adds to a reading; None for a kind that the model lacks."""
    of = {
        "embedding": pl.col("site") == "embed",
        **{kind: pl.col("mixer") == kind for kind in MIXERS},
        "ffn": pl.col("site") == "ffn_out",
        "bias": pl.col("site") == "final_norm_bias",
    }
    return {
        kind: here[column].sum() if (here := rows.filter(condition)).height else None for kind, condition in of.items()
    }


def said(rows: pl.DataFrame, rival: float | None) -> Markup:
    """Sums and largest parts in words. `rows`: attribution with differences, one prompt; the `rival`'s probability."""
    if rows.is_empty():
        return Markup()
    names = {"embedding": "the embedding adds", "attention": "attention", "mamba2": "Mamba2", "ffn": "the FFNs"}
    names["bias"] = "the bias of the last norm"
    kinds = [f"{names[kind]} {signed(value)}" for kind, value in sums(rows, "difference").items() if value is not None]
    total, target = rows["difference"].sum(), chip(rows["target_token"][0])
    sentence = Markup("The logit of {} is {} {} than that of its rival {}{}: {}.").format(
        target,
        decimals(abs(total)),
        "higher" if total >= 0 else "lower",
        chip(rows["rival_token"][0]),
        "" if rival is None else f" ({with_probability(rival)})",
        listed(kinds),
    )
    if rival is not None and rival < LIKELY:
        sentence += (
            " Against so unlikely a rival the difference tells little of the answer, and cannot be held beside that of "
            "another model."
        )
    return (
        sentence
        + Markup(" ")
        .join([Markup(""), *(largest(rows, column, f"For the {name}") for column, name in READINGS.items())])
        .rstrip()
    )


def largest(rows: pl.DataFrame, column: str, opening: str) -> Markup:
    """Which layer's mixer or FFN, and which head, add most to a reading; several where they are equal as shown."""
    layers = (
        rows.filter(pl.col("site").is_in(["z", "mixer_bias", "ffn_out"]))
        .with_columns(part=pl.when(pl.col("site") == "ffn_out").then(pl.lit("FFN")).otherwise(pl.col("mixer")))
        .group_by("part", "layer", maintain_order=True)
        .agg(pl.col(column).sum())
    )
    if layers.is_empty():
        return Markup()
    most = leading(layers.with_columns(pl.col(column).round(SHOWN)), column)
    told = [
        f"the {f'{MIXERS[part]} mixer' if part in MIXERS else part} of layer {layer}"
        for part, layer, _ in most.sort("layer", maintain_order=True).iter_rows()
    ]
    sentence = Markup("{}, {} most, {}").format(
        opening, f"{listed(told)} {'adds' if len(told) == 1 else 'add'}", signed(most[column][0])
    )
    heads = leading(rows.filter(pl.col("site") == "z").with_columns(pl.col(column).round(SHOWN)), column)
    if heads.height:
        of_heads = [f"head {row['head']} of layer {row['layer']}" for row in heads.to_dicts()]
        sentence += Markup("; of single heads, {}, {}").format(listed(of_heads), signed(heads[column][0]))
    return sentence + "."
