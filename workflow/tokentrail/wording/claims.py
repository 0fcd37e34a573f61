"""What the tables allow to be said: the rules behind "all", "none", "first", "most" and "more", in one place.

Each rule is a pure function over rows of one model, with every operation, prompt, filler or variant that was run. It
returns what a sentence is chosen by, with what disagrees kept apart; the sentences are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from tokentrail.charts.select import MIXERS, first_leading, full_depth, uniform_on_first

HALF = 0.5
"""A value that moves the answer by this share of the way to the other name, or more, carries the name."""
SINK = 2.0
"""From this many times the weight that evenly spread attention would put there, in every prompt, a layer is a sink."""
KL_FLOOR = 1e-6
"""Nats. Below it float32's own rounding decides, and nothing is told apart."""
DECIMALS = 3
"""Probabilities that are equal to so many decimals are equal to a reader, and no one of them is the largest."""

SINGLE = {"mixer": "mixer", "head": "head", "ffn": "FFN"}
"""Components that are one part alone, in the order in which they are told."""


# What stands out


def leading(rows: pl.DataFrame, value: str, tie: float = 0.0) -> pl.DataFrame:
    """The rows with the largest value, in their order: one if it is alone, several if others come within `tie`."""
    return rows.filter(pl.col(value) >= pl.col(value).max() - tie)


def trailing(rows: pl.DataFrame, value: str, tie: float = 0.0) -> pl.DataFrame:
    """The rows with the smallest value, in their order: several if others come within `tie`."""
    return rows.filter(pl.col(value) <= pl.col(value).min() + tie)


def overlapping(rows: pl.DataFrame, value: str, low: str, high: str) -> pl.DataFrame:
    """The row with the smallest value and those that its interval does not set it apart from, the smallest first."""
    least = rows.sort(value, maintain_order=True).head(1)
    if least.is_empty():
        return least
    return rows.filter(pl.col(low) <= least[high][0]).sort(value, maintain_order=True)


def apart(low: float, high: float, other_low: float, other_high: float) -> bool:
    """Whether two ranges have no value in common, so that one may be called more than the other."""
    return high < other_low or other_high < low


def way(changes: Sequence[float], none: float) -> Literal["none", "more", "less", "both"]:
    """Whether changes go one way in every case; those within `none` of zero go no way."""
    more, less = any(change > none for change in changes), any(change < -none for change in changes)
    return "both" if more and less else "more" if more else "less" if less else "none"


# Ablations


def answered(ablations: pl.DataFrame) -> pl.DataFrame:
    """The rows of prompts whose target comes first with nothing changed: of others, nothing can be said to stay."""
    clean = ablations.filter(component="clean")
    known = clean.filter(pl.col("target_rank") == 0).select("prompt", clean="target_probability")
    return ablations.join(known, on="prompt", maintain_order="left")


def stays_first(ablations: pl.DataFrame) -> pl.DataFrame:
    """Whether the target stays first without each part: `answered` rows with `part`, its kind in words, and `kept`.

    Single mixers, heads and FFNs are parts of one kind each, whatever the operation; each set is a part of its own.
    """
    component, kinds = pl.col("component"), {f"all {kind}": f"all {name}" for kind, name in MIXERS.items()}
    return (
        answered(ablations)
        .filter(component != "clean")
        .with_columns(part=component.replace(SINGLE | kinds), kept=pl.col("target_rank") == 0)
    )


def needed(ablations: pl.DataFrame) -> pl.DataFrame:
    """One row for each kind of single part and operation: how many `cases` there are, and in how many it is `kept`.

    With them the lowest `probability` that was left of `clean`, and the `lost` layers and heads, with the token that
    comes first there. Only a kind that is kept in every case of every operation may be said not to be needed.
    """
    single = stays_first(ablations).filter(pl.col("component").is_in(list(SINGLE)))
    where = pl.struct("prompt", "layers", "heads", "top1_token", "target_probability")
    order = pl.col("part").replace_strict(
        {name: place for place, name in enumerate(SINGLE.values())}, return_dtype=pl.Int64
    )
    return (
        single.group_by("part", "operation", maintain_order=True)
        .agg(
            pl.col("kept").sum(),
            cases=pl.len(),
            prompts=pl.col("prompt").n_unique(),
            clean=pl.col("clean").min(),
            probability=pl.col("target_probability").min(),
            lost=where.filter(~pl.col("kept")),
        )
        .sort(order, maintain_order=True)
    )


def without_kind(ablations: pl.DataFrame) -> pl.DataFrame:
    """One row for each kind of mixer, operation and prompt, with all layers of the kind off: `kept`, and `clean`."""
    return stays_first(ablations).filter(pl.col("component").is_in([f"all {kind}" for kind in MIXERS]))


# Distance


def reach(sweep: pl.DataFrame) -> pl.DataFrame:
    """One row for each variant and filler: how many of the lengths that were run have the name `kept` first.

    `first` and `lost` are the distances of each, `beyond` those that the model has no positions for, and `rank`, `at`
    and `token` are those of the worst: where the name has the highest rank and, among equals, the least probability.
    A length without filler is the same input for every filler.
    """
    run = (pl.col("status") == "ok").fill_null(False)
    first = run & (pl.col("target_rank") == 0)

    def worst(column: str) -> pl.Expr:
        by = [pl.col(name).filter(run) for name in ("target_rank", "target_probability")]
        return pl.col(column).filter(run).sort_by(by, descending=[True, False]).first()

    return (
        sweep.sort("distance", maintain_order=True)
        .group_by("variant", "filler", maintain_order=True)
        .agg(
            kept=first.sum(),
            cases=run.sum(),
            first=pl.col("distance").filter(first),
            lost=pl.col("distance").filter(run & ~first),
            beyond=pl.col("distance").filter(~run),
            rank=worst("target_rank"),
            at=worst("distance"),
            token=worst("top1_token"),
            probability=pl.col("target_probability").max(),
        )
    )


# When the answer stands


def leads_after(lens: pl.DataFrame) -> pl.DataFrame:
    """For each prompt, the `first` layer after which the target leads by the logit lens, null if it never does.

    With it the target's `probability` there, and the `last` layer.
    """
    depth = full_depth(lens)
    found = first_leading(lens).select("prompt", first="layer", probability="target_probability")
    last = depth.group_by("prompt", maintain_order=True).agg(last=pl.col("layer").max())
    return last.join(found, on="prompt", how="left", maintain_order="left")


def carried_to_the_end(patching: pl.DataFrame) -> pl.DataFrame:
    """For each pair of prompts, the first layer after which the last token's stream alone carries the name.

    `after` is null where it does after no layer before the last; -1 stands for the embedding.
    """
    stream = patching.filter(site="resid_pre").filter(pl.col("position") == pl.col("position").max().over("prompt"))
    return stream.group_by("prompt", "source_prompt", maintain_order=True).agg(
        after=pl.col("layer").filter(pl.col("recovered") >= HALF).min() - 1, depth=pl.col("layer").max() + 1
    )


def higher_before(compared: pl.DataFrame) -> pl.DataFrame:
    """The prompts that can have stood higher before the end, with `higher`: a target that ends first cannot have.

    `compared` is the lens' `best_and_last`.
    """
    return compared.filter(pl.col("last") > 0).with_columns(higher=pl.col("best") < pl.col("last"))


# The first token


def beside_uniform(sink: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """One row for each attention layer: its mean `weight` on the first token, and that of evenly spread attention.

    `is_sink` is true where the weight is at least `SINK` times the even one in every prompt, `below` where it is below
    the even one on average.
    """
    once = sink.unique(["prompt", "layer"], keep="first", maintain_order=True)
    even = once.join(uniform_on_first(tokens), on=["model", "prompt"], maintain_order="left")
    return (
        even.group_by("layer")
        .agg(
            weight=pl.col("weight_on_first").mean(),
            uniform=pl.col("uniform").mean(),
            is_sink=(pl.col("weight_on_first") >= SINK * pl.col("uniform")).all(),
        )
        .with_columns(below=pl.col("weight") < pl.col("uniform"))
        .sort("layer")
    )


def moves_more(sink: pl.DataFrame, one: str, other: str) -> tuple[int, int, int]:
    """In how many prompts the first intervention moves the prediction more than the other, less, and how many in all.

    Effects below `KL_FLOOR` are none, and equal to each other.
    """
    answers = sink.unique(["prompt", "intervention"], keep="first", maintain_order=True)
    kl = answers.with_columns(pl.col("kl").clip(KL_FLOOR))
    both = kl.filter(intervention=one).join(kl.filter(intervention=other), on="prompt", suffix="_other")
    more, less = (both["kl"] > both["kl_other"]).sum(), (both["kl"] < both["kl_other"]).sum()
    return more, less, both.height


# Attribution


def rival_probability(attribution: pl.DataFrame, next_token: pl.DataFrame) -> float | None:
    """The rival's probability, None if it was not measured. `attribution` and `next_token` of one prompt."""
    if attribution.is_empty():
        return None
    ranked = next_token.filter(~pl.col("is_target")).sort("rank")
    found = ranked.filter(token=attribution["rival_token"][0]).head(1)
    return found["probability"][0] if found.height else None


# Times


def drifted(summary: pl.DataFrame) -> pl.DataFrame:
    """The cases whose second median lies outside what the rounds of the first block span, the largest drift first."""
    outside = (pl.col("repeat_median_ms") < pl.col("min_ms")) | (pl.col("repeat_median_ms") > pl.col("max_ms"))
    return summary.filter(outside).sort(pl.col("drift").abs(), descending=True, maintain_order=True)
