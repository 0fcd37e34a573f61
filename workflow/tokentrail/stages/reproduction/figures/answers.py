"""Figures of what the model says next: on the prompts, on other names, at growing distance."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from tokentrail.stages.reproduction.figures.text import FILLER, repeats_of
from tokentrail.stages.reproduction.ledger import NO_MODEL, Figure
from tokentrail.stages.reproduction.run import NotRun, Run

TOKENS = {"the": " the", "france": " France", "paris": " Paris", "ie": "ie"}
"""The tokens that quantities are named after."""
VARIANTS = {"": "as_trained", "_all_attention_off": "attention_off"}
NAMES = {"carol": "Carol", "mirabel": "Mirabel"}


def top(run: Run, figure: Figure, place: str, column: str) -> Any:
    """`top2_token`: the token of rank 1."""
    if figure.input in NAMES and figure.stage == "name_swap":
        swapped = run.rows("name_swaps", figure.model, name=NAMES[figure.input])
        return alice(swapped)["top1_token"][0]
    return run.row("next_token", figure.model, prompt=figure.input, rank=int(place) - 1)[column]


def alice(swapped: pl.DataFrame) -> pl.DataFrame:
    """The rows of the published sentence, which the swap sets call by its first name."""
    rows = swapped.filter(pl.col("template") == "alice")
    if rows.is_empty():
        raise NotRun("no swap set has the published sentence as its template alice")
    return rows


def target(run: Run, figure: Figure) -> dict[str, Any]:
    return run.row("next_token", figure.model, prompt=figure.input, is_target=True)


def token(run: Run, figure: Figure, name: str) -> dict[str, Any]:
    return run.row("next_token", figure.model, prompt=figure.input, token=TOKENS[name])


def gap(run: Run, figure: Figure, one: str, other: str) -> float:
    return token(run, figure, one)["logit"] - token(run, figure, other)["logit"]


def spread(run: Run, figure: Figure) -> dict[str, Any]:
    """The distribution at the prompt's last position, as computed."""
    rows = run.rows("distribution", figure.model, prompt=figure.input)
    for column, value in (("step", 0), ("decoding", "none")):
        if column in rows.columns:
            rows = rows.filter(pl.col(column) == value)
    if rows.height != 1:
        raise NotRun(f"distribution has {rows.height} rows for the prompt {figure.input}")
    return rows.row(0, named=True)


def firsts(run: Run, figure: Figure) -> int:
    """How often the name came first, over the five names; over all models for a figure of none."""
    models = run.models if figure.model == NO_MODEL else [figure.model]
    return sum((names(run, model)["rank"] == 0).sum() for model in models)


def names(run: Run, model: str) -> pl.DataFrame:
    return alice(run.rows("name_swaps", model, set="five-names"))


def at_distance(run: Run, figure: Figure, column: str, variant: str) -> Any:
    """`filler-16`: a cell of the sweep."""
    repeats = int(figure.input.partition("-")[2])
    found = run.row("filler_sweep", figure.model, filler=FILLER, repeats=repeats, variant=variant)
    if found["status"] != "ok":
        raise NotRun(f"the input is longer than {figure.model} has positions")
    return found[column]


def sweep(run: Run, figure: Figure, variant: str) -> pl.DataFrame:
    rows = run.rows("filler_sweep", figure.model, filler=FILLER, variant=variant, status="ok")
    if rows.height < len(repeats_of(run)):
        raise NotRun(f"some inputs of the sweep are longer than {figure.model} has positions")
    return rows.sort("repeats")


def probability(run: Run, figure: Figure, off: str | None) -> float:
    """Of the target: at a distance, with parts switched off, or on a prompt."""
    variant = VARIANTS[off or ""]
    if figure.stage == "filler":
        return at_distance(run, figure, "target_probability", variant)
    if off:
        return run.row("ablations", figure.model, prompt=figure.input, component="all attention", operation="zero")[
            "target_probability"
        ]
    return target(run, figure)["probability"]


def lost_from(run: Run, figure: Figure) -> int:
    """The tokens of the first input of the sweep, without attention, at which the target is not first."""
    lost = sweep(run, figure, "attention_off").filter(pl.col("target_rank") > 0)
    return lost["tokens"][0] if lost.height else -1


def all_attention_off_top1(run: Run, figure: Figure) -> str:
    if figure.stage == "filler":
        return at_distance(run, figure, "top1_token", "attention_off")
    chosen = {"component": "all attention", "operation": "zero"}
    return run.row("ablations", figure.model, prompt=figure.input, **chosen)["top1_token"]


FIGURES = {
    r"top(\d)_token": lambda run, f, n: top(run, f, n, "token"),
    r"top(\d)_probability(?:_rounded)?": lambda run, f, n: top(run, f, n, "probability"),
    r"greedy_token": lambda run, f: top(run, f, "1", "token"),
    r"target_probability(_all_attention_off)?": probability,
    r"target_probability_final": lambda run, f: target(run, f)["probability"],
    r"target_rank_zero_based(?:_final)?|tokens_scoring_above_target": lambda run, f: target(run, f)["rank"],
    r"target_rank_one_based": lambda run, f: target(run, f)["rank"] + 1,
    r"probability_of_(the|france|paris|ie)": lambda run, f, name: token(run, f, name)["probability"],
    r"negative_log_likelihood_of_(the|france|paris)": lambda run, f, name: token(run, f, name)["nll"],
    r"logit_gap_(the)_minus_(paris)": gap,
    r"probability_ratio_(the)_over_(paris)": lambda run, f, a, b: math.exp(gap(run, f, a, b)),
    r"logit_gap_at_temperature_2": lambda run, f: gap(run, f, "the", "paris") / 2,
    r"odds_at_temperature_2": lambda run, f: math.exp(gap(run, f, "the", "paris") / 2),
    r"top5_probability_sum(?:_percent)?": lambda run, f: spread(run, f)["top5_mass"],
    r"probability_outside_top5": lambda run, f: 1 - spread(run, f)["top5_mass"],
    r"entropy_bits(?:_rounded)?": lambda run, f: spread(run, f)["entropy_bits"],
    r"two_to_the_entropy(?:_rounded)?": lambda run, f: spread(run, f)["effective_choices"],
    r"tokens_covering_90_percent": lambda run, f: spread(run, f)["tokens_for_90_percent"],
    r"uniform_entropy_bits(?:_rounded)?": lambda run, f: math.log2(run.spec("gpt2").vocabulary),
    r"tokens_outside_top5": lambda run, f: spread(run, f)["vocabulary"] - 5,
    r"tokens_other_than_target": lambda run, f: spread(run, f)["vocabulary"] - 1,
    r"logits_other_than_a_pair": lambda run, f: spread(run, f)["vocabulary"] - 2,
    r"max_abs_logit_diff_vs_transformers": lambda run, f: run.rows("parity", f.model, prompt=f.input)[
        "max_abs_logit_diff"
    ].max(),
    r"names_tried": lambda run, f: names(run, run.models[0])["name"].n_unique(),
    r"cases_total": lambda run, f: sum(names(run, model).height for model in run.models),
    r"count_target_top1": firsts,
    r"top1_token_all_attention_off": all_attention_off_top1,
    r"min_target_probability": lambda run, f: sweep(run, f, "as_trained")["target_probability"].min(),
    r"target_is_top1_all_attention_off": lambda run, f: at_distance(run, f, "target_rank", "attention_off") == 0,
    r"smallest_token_count_where_target_lost_all_attention_off": lost_from,
}
