"""Rows that several charts and the report pick in the same way."""

from __future__ import annotations

import polars as pl

TENSOR_GROUPS = {
    "token_embedding": "token embedding",
    "position_embedding": "position embedding",
    "attention": "attention",
    "mamba2": "Mamba2",
    "ffn": "FFN",
    "norm": "norms",
    "head": "output head",
}
"""Groups of tensors, the `family` of a census, in the order in which they are shown, and their names in words."""
MIXERS = {"attention": "attention", "mamba2": "Mamba2"}
"""Kinds of mixer in the order in which they are shown, and their names in words."""
OURS = "tokentrail"
"""What the tables of times call this workflow's own pass."""
STATUSES = {"reproduced": "reproduced", "differs": "differs", "shown": "shown, not judged", "not_run": "not run"}
"""What became of a published figure, in the order in which it is shown, and the words for it."""
OPERATIONS = {
    "zero": "set to zero",
    "mean": "mean over other prompts",
    "resample": "taken from another prompt",
}
"""What is put in the place of a part that is switched off, and the words for it."""


def ordered(frame: pl.DataFrame, column: str) -> list[str]:
    """The values of a column, each once, in the order of their first row."""
    return frame[column].unique(maintain_order=True).to_list()


def full_depth(lens: pl.DataFrame, variant: str = "as_trained") -> pl.DataFrame:
    """The lens after each whole layer of a variant of the model, with the number of layers beside it."""
    after = lens.filter((pl.col("site") == "resid_post") & (pl.col("variant") == variant))
    return after.with_columns(layers=pl.col("layer").max().over("model") + 1).sort("layer", maintain_order=True)


def first_leading(lens: pl.DataFrame) -> pl.DataFrame:
    """For each model and prompt, the first layer after which the target is the most likely token, if there is one."""
    leading = full_depth(lens).filter(pl.col("target_rank") == 0)
    return leading.unique(["model", "prompt"], keep="first", maintain_order=True)


def best_and_last(depth: pl.DataFrame) -> pl.DataFrame:
    """For each model and prompt, the best rank before the last layer, the first layer that has it, and the last rank.

    `depth` is the lens `full_depth`; a model of one layer has nothing before the last.
    """
    before = depth.filter(pl.col("layer") < pl.col("layers") - 1).sort("target_rank", "layer", maintain_order=True)
    best = before.unique(["model", "prompt"], keep="first", maintain_order=True)
    last = depth.filter(pl.col("layer") == pl.col("layers") - 1)
    return last.select("model", "prompt", last="target_rank").join(
        best.select("model", "prompt", best="target_rank", after="layer"), on=["model", "prompt"], maintain_order="left"
    )


def last_position(residual: pl.DataFrame) -> pl.DataFrame:
    """The rows of each prompt's last token."""
    return residual.filter(pl.col("position") == pl.col("position").max().over("model", "prompt"))


def set_sizes(swaps: pl.DataFrame) -> dict[str, int]:
    """The number of names in each swap set."""
    counted = swaps.group_by("set", maintain_order=True).agg(pl.col("name").n_unique())
    return dict(counted.iter_rows())


def first_prompt(frame: pl.DataFrame) -> pl.DataFrame:
    """For each model, the rows of the first prompt that it has any of."""
    return frame.filter(pl.col("prompt") == pl.col("prompt").first().over("model"))


def layers_of(frame: pl.DataFrame, mixer: str) -> list[int]:
    """The layers with a mixer of this kind, in order."""
    return frame.filter(pl.col("mixer") == mixer)["layer"].unique().sort().to_list()


def attributed(attribution: pl.DataFrame) -> pl.DataFrame:
    """The rows with what each adds to the logit of the target minus that of its rival."""
    return attribution.with_columns(difference=pl.col("target_logit_contribution") - pl.col("rival_logit_contribution"))


def target_positions(next_token: pl.DataFrame, tokens: pl.DataFrame) -> list[int]:
    """Where the target stands in the text, before the last position."""
    target = next_token.filter("is_target")["token_id"].to_list()
    last = tokens["position"].max()
    return tokens.filter(pl.col("token_id").is_in(target) & (pl.col("position") < last))["position"].to_list()


def looking(rows: pl.DataFrame, targets: list[int]) -> pl.DataFrame:
    """For each kind of mixer, the head whose last token puts the largest weight on the target: one row a kind."""
    last = rows["query_position"].max()
    keys = pl.col("key_position").is_in(targets) if targets else pl.col("key_position").is_between(1, last - 1)
    sizes = (
        rows.lazy()
        .filter((pl.col("query_position") == last) & keys)
        .group_by("mixer", "layer", "head")
        .agg(pl.col("weight").abs().max())
        .sort(pl.col("weight").neg(), "layer", "head")
        .collect()
    )
    return sizes.unique("mixer", keep="first", maintain_order=True)


def replayed_word(merges: pl.DataFrame, most_steps: int) -> str | None:
    """The word to show step by step: of one piece for every model, with the most merges that can still be drawn."""
    words = merges.filter(pl.col("kind") == "word").group_by("prompt", maintain_order=True)
    sizes = words.agg(pl.col("step").max(), pl.col("piece").max()).filter(pl.col("piece") == 0)
    few = sizes.filter(pl.col("step") <= most_steps).sort("step", descending=True, maintain_order=True)
    chosen = few if few.height else sizes.sort("step", maintain_order=True)
    return chosen["prompt"][0] if chosen.height else None


def as_computed(distribution: pl.DataFrame) -> pl.DataFrame:
    """The rows of the configured prompts' own last positions, without a decoding rule."""
    plain = (pl.col("decoding") == "none") & (pl.col("step") == 0) & (pl.col("experiment") == "")
    return distribution.filter(plain)


def with_factors(experiment: pl.DataFrame) -> pl.DataFrame:
    """The rows of one experiment, with a column `factor <name>` for each of its factors that holds the level."""
    first = experiment["levels"][0] if experiment.height else ""
    factors = [part.partition(": ")[0] for part in first.split(", ")] if first else []
    levels = pl.col("levels").str.split(", ")
    return experiment.with_columns(
        levels.list.get(place).str.strip_prefix(f"{factor}: ").alias(f"factor {factor}")
        for place, factor in enumerate(factors)
    )


def uniform_on_first(tokens: pl.DataFrame) -> pl.DataFrame:
    """For each model and prompt, the `uniform` weight on the first token: that of attention that is spread evenly.

    The query at position q sees q + 1 positions; the mean is over all queries but the first, as in `sink`.
    """
    seen = pl.col("position") + 1
    return (
        tokens.filter(pl.col("position") > 0)
        .group_by("model", "prompt", maintain_order=True)
        .agg(uniform=(1 / seen).mean())
    )
