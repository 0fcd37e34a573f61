"""Figures of decoding with a cache, of times, and of what they cost."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.stages.reproduction.figures.sizes import numbers
from tokentrail.stages.reproduction.figures.text import alike
from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run

OURS = "tokentrail"
TIMED = {
    "decode_ms_per_token_median": "median_ms",
    "decode_ms_per_token_p10": "p10_ms",
    "decode_ms_per_token_p90": "p90_ms",
    "decode_step_ms_median": "median_ms",
    "prefill_ms_median": "median_ms",
    "prefill_ms_p10": "p10_ms",
    "prefill_ms_p90": "p90_ms",
    "tokens_per_second": "tokens_per_second",
    "prefill_tokens_per_second": "tokens_per_second",
}
KINDS = {"timing": "decode", "batch": "batch", "prefill": "prefill"}


def steps(run: Run, figure: Figure) -> pl.DataFrame:
    """Greedy decoding after the prompt, one row a call; the first is the prompt itself."""
    return run.rows("cache", figure.model, prompt=figure.input, kind="decode").sort("step")


def step(run: Run, figure: Figure, column: str, number: str) -> Any:
    rows = steps(run, figure).filter(pl.col("step") == int(number))
    if rows.is_empty():
        raise NotRun(f"stages.cache.steps is below {number}")
    return rows[column][0]


def decoded(run: Run, figure: Figure) -> pl.DataFrame:
    return steps(run, figure).filter(pl.col("step") > 0)


def timed(run: Run, figure: Figure, quantity: str) -> float:
    """`context 8`, `batch 2, context 64`, `context 32, repeat run`."""
    found = numbers(figure.input)
    batch, context = (found[0], found[1]) if figure.stage == "batch" else (1, found[0])
    where = {"implementation": OURS, "kind": KINDS[figure.stage], "batch": batch, "context": context}
    row = run.row("timing_summary", figure.model, **where)
    if row["status"] != "ok":
        raise NotRun(f"it was not timed: {row['reason']}")
    return row["repeat_median_ms" if "repeat run" in figure.input else TIMED[quantity]]


def listed(run: Run, kind: str, column: str) -> list[int]:
    rows = run.rows("timing_summary", run.models[0], implementation=OURS, kind=kind)
    return rows[column].unique().sort().to_list()


def fact(run: Run, name: str) -> str:
    """Of the machine, which is the same for all models."""
    return run.row("machine", run.models[0], fact=name)["value"]


FIGURES = {
    r"cache_length_after_prefill": lambda run, f: step(run, f, "cache_tokens", "0"),
    r"cache_length_step_(\d+)": lambda run, f, n: step(run, f, "cache_tokens", n),
    r"greedy_token_fed_step_(\d+)": lambda run, f, n: step(run, f, "token", n),
    r"same_top_id_cached_vs_full_step_(\d+)": lambda run, f, n: step(run, f, "top1_agrees", n),
    r"(max|mean)_abs_logit_diff_cached_vs_full_step_(\d+)": (
        lambda run, f, which, n: step(run, f, f"{which}_abs_logit_diff", n)
    ),
    r"max_abs_logit_diff_cached_vs_full": lambda run, f: decoded(run, f)["max_abs_logit_diff"].max(),
    r"count_steps_with_same_top_id": lambda run, f: decoded(run, f)["top1_agrees"].sum(),
    r"cache_length_growth_per_step": lambda run, f: alike(steps(run, f)["cache_tokens"].diff().drop_nulls()),
    rf"({'|'.join(TIMED)})": timed,
    r"rounds": lambda run, f: alike(run.rows("timing_summary", run.models[0], implementation=OURS)["rounds"]),
    r"decode_contexts": lambda run, f: listed(run, "decode", "context"),
    r"batch_sizes": lambda run, f: listed(run, "batch", "batch"),
    r"prefill_contexts": lambda run, f: listed(run, "prefill", "context"),
    r"batch_table_context": lambda run, f: alike(listed(run, "batch", "context")),
    r"(python|torch|transformers|numpy)_version": lambda run, f, name: fact(run, name),
    r"device": lambda run, f: fact(run, "processor"),
    r"torch_threads": lambda run, f: fact(run, "threads"),
    r"machine_price_per_hour": lambda run, f: alike(run.rows("cost", run.models[0])["price_per_hour"]),
}
