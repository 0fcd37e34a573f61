"""Figures of what happens when parts are switched off."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run

SETS = {
    "all_mamba2": "all mamba2",
    "all_attention": "all attention",
}


def zeroed(run: Run, figure: Figure, **where: Any) -> pl.DataFrame:
    return run.rows("ablations", figure.model, prompt=figure.input, operation="zero", **where)


def single(run: Run, figure: Figure) -> pl.DataFrame:
    """Each attention layer off alone, in the layers' order."""
    rows = zeroed(run, figure, component="mixer", mixer="attention")
    return rows.with_columns(layer=pl.col("layers").cast(pl.Int64)).sort("layer")


def one_layer(run: Run, figure: Figure, layer: str, column: str) -> Any:
    rows = single(run, figure).filter(pl.col("layer") == int(layer))
    if rows.is_empty():
        raise NotRun(f"{figure.model} has no attention layer {layer}")
    return rows[column][0]


def of_set(run: Run, figure: Figure, name: str, column: str) -> Any:
    """`all_mamba2`, or `mamba2_from_layer_16`."""
    component = SETS.get(name, name.replace("_", " "))
    return zeroed(run, figure, component=component)[column][0]


def first_mamba2(run: Run, figure: Figure) -> str:
    rows = zeroed(run, figure, component="mixer", mixer="mamba2")
    return rows.sort(pl.col("layers").cast(pl.Int64))["top1_token"][0]


def without_layer_0(run: Run, figure: Figure) -> pl.DataFrame:
    return single(run, figure).filter(pl.col("layer") > 0)


def exception(run: Run, figure: Figure) -> int:
    """The one layer whose loss costs the model its answer."""
    lost = single(run, figure).filter(pl.col("target_rank") > 0)["layer"].to_list()
    return lost[0] if len(lost) == 1 else lost


SET = r"all_mamba2|mamba2_from_layer_\d+"
FIGURES = {
    r"single_attention_switches_tried": lambda run, f: single(run, f).height,
    r"count_target_top1_single_attention_off": lambda run, f: (single(run, f)["target_rank"] == 0).sum(),
    r"min_target_probability_single_attention_off": lambda run, f: single(run, f)["target_probability"].min(),
    r"layer_of_min_target_probability_single_attention_off": lambda run, f: single(run, f).sort(
        "target_probability", "layer"
    )["layer"][0],
    r"target_probability_attention_layer_(\d+)_off": lambda run, f, n: one_layer(run, f, n, "target_probability"),
    r"top1_token_attention_layer_(\d+)_off": lambda run, f, n: one_layer(run, f, n, "top1_token"),
    r"count_single_attention_off_at_or_above_(\d)_(\d+)": lambda run, f, whole, rest: (
        # The bound is printed with three decimals: a probability that rounds to it reaches it.
        (single(run, f)["target_probability"].round(len(rest)) >= float(f"{whole}.{rest}")).sum()
    ),
    r"min_target_probability_single_attention_off_except_layer_0": lambda run, f: without_layer_0(run, f)[
        "target_probability"
    ].min(),
    r"exception_layer_single_attention_off": exception,
    r"top1_token_first_mamba2_layer_off": first_mamba2,
    rf"target_probability_({SET})_off": lambda run, f, name: of_set(run, f, name, "target_probability"),
    rf"top1_token_({SET})_off": lambda run, f, name: of_set(run, f, name, "top1_token"),
    rf"zeroed_calls_({SET}|all_attention)_off": lambda run, f, name: of_set(run, f, name, "applied_edits"),
}
