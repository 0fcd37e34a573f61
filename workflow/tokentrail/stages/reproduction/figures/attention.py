"""Figures of who takes from whom: attention rows, the sink, Mamba2 unrolled."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.stages.reproduction.figures.answers import TOKENS
from tokentrail.stages.reproduction.figures.text import pieces
from tokentrail.stages.reproduction.ledger import NO_MODEL, Figure
from tokentrail.stages.reproduction.run import NotRun, Run

HEAD_COLUMNS = {
    "attention_argmax_token": "argmax_token",
    "attention_max_weight": "argmax_weight",
    "attention_entropy": "entropy_bits",
    "attention_weight_position_0": "weight_on_first",
}
ARGMAX = {"the": "The", "france": " France"}
INTERVENTIONS = {"mask_position_0": "mask", "replace_first_token": "replace_token"}


def head(run: Run, figure: Figure, quantity: str, layer: str, number: str) -> Any:
    row = run.row("attention", figure.model, prompt=figure.input, layer=int(layer), head=int(number))
    return row[HEAD_COLUMNS[quantity]]


def heads(run: Run, figure: Figure, layer: str) -> pl.DataFrame:
    return run.rows("attention", figure.model, prompt=figure.input, layer=int(layer)).sort("head")


def on_first(run: Run, figure: Figure) -> pl.DataFrame:
    """The last token's weight on the first, mean over the heads of each layer."""
    rows = run.rows("attention", figure.model, prompt=figure.input)
    return rows.group_by("layer").agg(pl.col("weight_on_first").mean()).sort("layer")


def mixing(run: Run, figure: Figure, layer: str, model: str | None = None) -> pl.DataFrame:
    return run.rows("mixing", model or figure.model, prompt=figure.input, layer=int(layer))


def row_of(run: Run, figure: Figure, layer: str, number: str) -> pl.DataFrame:
    """One head's last row."""
    rows = mixing(run, figure, layer).filter(pl.col("head") == int(number))
    return rows.filter(pl.col("query_position") == pl.col("query_position").max())


def weight_to(run: Run, figure: Figure, layer: str, number: str, position: str) -> float:
    rows = row_of(run, figure, layer, number).filter(pl.col("key_position") == int(position))
    if rows.is_empty():
        raise NotRun(f"{figure.input} has no position {position}, or {figure.model} no head {number}")
    return rows["weight"][0]


def to_france(run: Run, figure: Figure, layer: str) -> pl.DataFrame:
    """For each head, its last row with each key's token."""
    rows = mixing(run, figure, layer)
    last = rows.filter(pl.col("query_position") == pl.col("query_position").max())
    tokens = [token for _, token in pieces(run, figure.model, figure.input)]
    return last.with_columns(token=pl.col("key_position").map_elements(lambda at: tokens[at], pl.String))


def most_on_france(run: Run, figure: Figure, layer: str) -> int:
    rows = to_france(run, figure, layer).filter(pl.col("token") == TOKENS["france"])
    if rows.is_empty():
        raise NotRun(f"{figure.input} has no token {TOKENS['france']!r}")
    return rows.sort(pl.col("weight").neg(), "head")["head"][0]


def largest_beside_itself(run: Run, figure: Figure, layer: str) -> list[int]:
    rows = to_france(run, figure, layer).filter(pl.col("key_position") < pl.col("query_position"))
    largest = rows.sort(pl.col("weight").neg()).unique("head", keep="first", maintain_order=True)
    return largest.filter(pl.col("token") == TOKENS["france"])["head"].sort().to_list()


def with_attention(run: Run, figure: Figure) -> list[pl.DataFrame]:
    """The attention weights of the figure's model, or of every model that has some."""
    models = run.models if figure.model == NO_MODEL else [figure.model]
    found = []
    for model in models:
        rows = run.rows("mixing", model, prompt=figure.input)
        found.append(rows.filter(pl.col("mixer") == "attention"))
    return found


def farthest_from_one(frames: list[pl.DataFrame]) -> float:
    """Of all row sums, the one that is farthest from 1."""
    sums = pl.concat(
        frame.group_by("model", "layer", "head", "query_position").agg(pl.col("weight").sum()) for frame in frames
    )["weight"]
    return sums[(sums - 1).abs().arg_max()]


def above_diagonal(frames: list[pl.DataFrame]) -> float:
    """The largest weight on a later position; no such pair is in the table unless the pass let one through."""
    later = pl.concat(frame.filter(pl.col("key_position") > pl.col("query_position")) for frame in frames)
    return later["weight"].abs().max() or 0.0


def peaking_on_first(run: Run, figure: Figure, layer: str) -> float:
    rows = mixing(run, figure, layer).sort(pl.col("weight").neg(), "key_position")
    peaks = rows.unique(["head", "query_position"], keep="first", maintain_order=True)
    return (peaks["key_position"] == 0).mean()


def seen_at(run: Run, figure: Figure, position: str) -> int:
    """How many positions a Mamba2 layer has read when it stands at one."""
    rows = run.rows("mixing", figure.model, prompt=figure.input, mixer="mamba2", query_position=int(position))
    return rows["key_position"].n_unique()


def decays(run: Run, figure: Figure) -> bool:
    """Whether each step leaves less than all and more than nothing of what stood in the state."""
    left = run.rows("long_range", figure.model, mixer="mamba2")["state_retention"]
    return bool(((left > 0) & (left < 1)).all())


def on_first_by_prompt(run: Run, figure: Figure, name: str) -> float:
    rows = run.rows("sink", figure.model, intervention=INTERVENTIONS[name]).unique("prompt")
    return rows["kl"].mean()


def mean_on_first(run: Run, figure: Figure, everywhere: str | None = None) -> float:
    if figure.input == "six short prompts":
        rows = run.rows("attention", figure.model)
        return rows.group_by("prompt").agg(pl.col("weight_on_first").mean())["weight_on_first"].mean()
    return on_first(run, figure)["weight_on_first"].mean()


def last_on_first(run: Run, figure: Figure, layer: str) -> float:
    rows = on_first(run, figure).filter(pl.col("layer") == int(layer))
    if rows.is_empty():
        raise NotRun(f"{figure.model} has no attention layer {layer}")
    return rows["weight_on_first"][0]


def sink_kl(run: Run, figure: Figure, name: str) -> float:
    return run.rows("sink", figure.model, prompt=figure.input, intervention=INTERVENTIONS[name])["kl"][0]


FIGURES = {
    r"(attention_argmax_token|attention_max_weight|attention_entropy)_layer_(\d+)_head_(\d+)": head,
    r"(attention_weight_position_0)_layer_(\d+)_head_(\d+)": head,
    r"attention_weight_layer_(\d+)_head_(\d+)_to_position_(\d+)": weight_to,
    r"attention_row_sum_layer_(\d+)_head_(\d+)": lambda run, f, n, h: row_of(run, f, n, h)["weight"].sum(),
    r"head_with_most_attention_to_france_layer_(\d+)": most_on_france,
    r"heads_with_largest_non_self_weight_on_france_layer_(\d+)": largest_beside_itself,
    r"heads_with_argmax_(the|france)_layer_(\d+)": lambda run, f, name, n: (
        heads(run, f, n).filter(pl.col("argmax_token") == ARGMAX[name])["head"].to_list()
    ),
    r"attention_weight_row_sum": lambda run, f: farthest_from_one(with_attention(run, f)),
    r"max_attention_weight_above_diagonal": lambda run, f: above_diagonal(with_attention(run, f)),
    r"max_abs_weight_above_diagonal_layer_(\d+)": lambda run, f, n: above_diagonal([mixing(run, f, n)]),
    r"mean_attention_position_0_layer_(\d+)": last_on_first,
    r"mean_attention_position_0(_all_layers)?": mean_on_first,
    r"max_mean_attention_position_0": lambda run, f: on_first(run, f)["weight_on_first"].max(),
    r"layer_of_max_mean_attention_position_0": lambda run, f: on_first(run, f).sort(
        pl.col("weight_on_first").neg(), "layer"
    )["layer"][0],
    r"kl_nats_(mask_position_0|replace_first_token)": sink_kl,
    r"mean_kl_nats_(mask_position_0|replace_first_token)": on_first_by_prompt,
    r"min_fraction_of_rows_peaking_on_position_0_layer_(\d+)": peaking_on_first,
    r"state_updates_seen_position_(\d+)": seen_at,
    # exp(dt A) lies between 0 and 1 for a positive dt if and only if A is below 0.
    r"mamba2_decay_between_zero_and_one|mamba2_a_below_zero": decays,
    r"mixing_table_(?:attention|mamba2)_layer": lambda run, f: layer_in_tables(run, f),
}


def layer_in_tables(run: Run, figure: Figure) -> int:
    """The layer of the printed table, if the run's table has it with that kind of mixer."""
    kind = "attention" if "attention" in figure.quantity else "mamba2"
    return run.rows("mixing", figure.model, prompt="alice", layer=int(figure.published), mixer=kind)["layer"][0]
