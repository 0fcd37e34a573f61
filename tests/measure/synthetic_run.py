"""A run whose tables were made up: small enough to see in each what a query must find."""

from __future__ import annotations

import functools
from typing import Any

import polars as pl
from random_models import FULL_SHAPES
from tokentrail import rooms
from tokentrail.forward.families import read_spec
from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import Run

GPT2, QWEN3, GRANITE = "gpt2", "qwen3-0.6b-base", "granite-4.0-h-350m-base"
SHAPES = {GPT2: "gpt2", QWEN3: "qwen3-0.6b", GRANITE: "granite-4.0-h-350m"}
Q4, HALF = "q4", "q4-half"
PLAIN = {"bits": 4, "group_size": 64, "weights": ["all"], "one_at_a_time": False}
SCHEMES = {
    Q4: PLAIN,
    HALF: PLAIN | {"divisor": "half_range"},
    "q4-outliers": PLAIN | {"outliers": 0.01},
    "q4-packed": PLAIN | {"packed": True},
    "q8": PLAIN | {"bits": 8},
}


@functools.cache
def specs():
    return {model: read_spec(FULL_SHAPES[shape]) for model, shape in SHAPES.items()}


def rows(columns: str, *values: tuple[Any, ...], model: str = GPT2) -> pl.DataFrame:
    """Rows of one model: `columns` names them, separated by spaces."""
    frame = pl.DataFrame(values, schema=columns.split(), orient="row", infer_schema_length=None)
    return frame.select(pl.lit(model).alias("model"), pl.all())


def tables() -> dict[str, pl.DataFrame]:
    """Every table, most without rows."""
    return {
        name: schema.create_empty() for name, schema in rooms.schemas().items() if name != "reproduction"
    } | made_up()


def made_up() -> dict[str, pl.DataFrame]:
    said = "prompt rank token probability is_target"
    kls = {Q4: 4.0, HALF: 4.8316, "q4-outliers": 9.0, "q4-packed": 4.0, "q8": 0.0166}
    swept = "filler repeats variant target_probability status reason"
    return {
        "next_token": pl.concat(
            [
                rows(
                    said,
                    ("capital-france", 0, " the", 0.5, False),
                    ("capital-france", 1, " now", 0.3, False),
                    ("capital-france", 4, " Paris", 0.1, True),
                ),
                rows(said, ("capital-france", 0, " the", 0.4, False), model=GRANITE),
            ]
        ),
        "filler_sweep": rows(
            swept,
            ("town", 0, "as_trained", 0.99, "ok", ""),
            ("town", 16, "as_trained", None, "exceeds_positions", "1410 tokens are more than 1024 positions"),
        ),
        "quantization": rows(
            "scheme bits group_size families kl",
            *((name, SCHEMES[name]["bits"], 64, "all", kl) for name, kl in kls.items()),
            ("float32", None, None, "", 0.0),
        ),
        "quantization_error": rows("scheme first_scale", (Q4, 0.052), (HALF, 0.04576)),
    }


def run(**changed: pl.DataFrame) -> Run:
    """The made-up run, with some of its tables changed."""
    return Run(tables() | changed, specs(), SCHEMES)


def figure(measured: str = "", model: str = GPT2, value: str = "0", **other: Any) -> Figure:
    empty = {"tolerance_kind": "exact", "tolerance": None, "needs_weights": True, "place": "mine.csv, line 2"}
    told = dict.fromkeys(("stage", "input", "unit", "note"), "") | {"quantity": "share"}
    return Figure(id="mine", measured=measured, model=model, value=value, **(empty | told | other))
