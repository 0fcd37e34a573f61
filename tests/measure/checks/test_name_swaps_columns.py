"""`name_swaps` and `name_swaps_summary`: every name's every piece by a pass of its own."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from column_checks import recomputes
from definitions import in_order, last_logits, mean, quantile, rank_of, softmax
from tokentrail.stages.name_swaps import name_swaps, name_swaps_summary

SWAPS = {
    "people": {
        "templates": {"gave": "When {name} came, Bob gave the book to", "met": "{name} met Tom and"},
        "names": ["Carol", "Mirabel", "Zoé"],
    },
    "places": {"templates": {"of": "The capital of {name} is"}, "names": ["France", "Paris"]},
}


@recomputes(
    "name_swaps",
    *("set", "template", "name", "target_token", "pieces", "probability", "rank", "top1_token", "top1_probability"),
    "name_nll",
    key=("set", "template", "name"),
)
def test_name_swaps(tiny):
    rows = []
    for which, swap in SWAPS.items():
        for template, text in swap["templates"].items():
            for name in swap["names"]:
                prompt = text.replace("{name}", name)
                pieces = tiny.after(prompt, f" {name}")
                ids, said = tiny.ids(prompt), []
                for piece in pieces:
                    said.append(softmax(last_logits(tiny.model, ids)))
                    ids = [*ids, piece]
                first = said[0]
                top1 = in_order(first)[0]
                rows.append(
                    {
                        "set": which,
                        "template": template,
                        "name": name,
                        "target_token": tiny.text_of(pieces[0]),
                        "pieces": len(pieces),
                        "probability": first[pieces[0]],
                        "rank": rank_of(first, pieces[0]),
                        "top1_token": tiny.text_of(top1),
                        "top1_probability": first[top1],
                        "name_nll": -sum(math.log(p[piece]) for p, piece in zip(said, pieces, strict=True)),
                    }
                )
    assert {row["pieces"] for row in rows} >= {1, 3}, "names of one piece and of several"
    return name_swaps.measure(tiny.loaded, tiny.settings(sets=SWAPS, batch=4)), rows


BOOTSTRAP = {"samples": 40, "level": 0.8, "seed": 5}
MADE_UP = [  # set, template, name, rank, probability, name_nll
    ("people", "gave", "Carol", 0, 0.9, 0.2),
    ("people", "gave", "Tom", 3, 0.1, 3.1),
    ("people", "gave", "Zoé", 1, 0.3, 5.0),
    ("people", "met", "Carol", 0, 0.7, 0.4),
    ("people", "met", "Tom", 0, 0.6, 0.9),
    ("people", "met", "Zoé", 7, 0.05, 6.5),
    ("places", "of", "France", 0, 0.5, 0.8),
    ("places", "of", "Paris", 2, 0.2, 1.9),
]


@recomputes(
    "name_swaps_summary",
    *("set", "template", "rows", "names", "quantity", "mean", "low", "high", "level"),
    key=("set", "template", "quantity"),
)
def test_name_swaps_summary():
    swaps = pl.DataFrame(MADE_UP, schema=["set", "template", "name", "rank", "probability", "name_nll"], orient="row")
    value = {
        "probability": lambda row: row[4],
        "name_nll": lambda row: row[5],
        "top1_rate": lambda row: float(row[3] == 0),
    }
    rows = []
    for which, template in (
        ("people", "gave"),
        ("people", "met"),
        ("people", "all"),
        ("places", "of"),
        ("places", "all"),
    ):
        own = [row for row in MADE_UP if row[0] == which and template in (row[1], "all")]
        names = list(dict.fromkeys(row[2] for row in own))
        for quantity, of in value.items():
            by_name = [mean([of(row) for row in own if row[2] == name]) for name in names]
            drawn = np.random.default_rng(BOOTSTRAP["seed"]).integers(0, len(names), (BOOTSTRAP["samples"], len(names)))
            means = [mean([by_name[i] for i in draw]) for draw in drawn]
            rows.append(
                {
                    "set": which,
                    "template": template,
                    "rows": len(own),
                    "names": len(names),
                    "quantity": quantity,
                    "mean": mean([of(row) for row in own]),
                    "low": quantile(means, 0.1),
                    "high": quantile(means, 0.9),
                    "level": 0.8,
                }
            )
    return name_swaps_summary.measure(swaps, {"model": "tiny", "bootstrap": BOOTSTRAP}), rows
