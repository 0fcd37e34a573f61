"""Rows that several charts and the report pick in the same way."""

from __future__ import annotations

import polars as pl

FAMILIES = {
    "token_embedding": "token embedding",
    "position_embedding": "position embedding",
    "attention": "attention",
    "mamba2": "Mamba2",
    "ffn": "FFN",
    "norm": "norms",
    "head": "output head",
}
"""Families of tensors in the order in which they are shown, and their names in words."""


def ordered(frame: pl.DataFrame, column: str) -> list[str]:
    """The values of a column, each once, in the order of their first row."""
    return frame[column].unique(maintain_order=True).to_list()


def full_depth(lens: pl.DataFrame) -> pl.DataFrame:
    """The lens after each whole layer of the model as it was trained, with the number of layers beside it."""
    after = lens.filter((pl.col("site") == "resid_post") & (pl.col("variant") == "as_trained"))
    return after.with_columns(layers=pl.col("layer").max().over("model") + 1).sort("layer", maintain_order=True)


def first_leading(lens: pl.DataFrame) -> pl.DataFrame:
    """For each model and prompt, the first layer after which the target is the most likely token, if there is one."""
    leading = full_depth(lens).filter(pl.col("target_rank") == 0)
    return leading.unique(["model", "prompt"], keep="first", maintain_order=True)


def last_position(residual: pl.DataFrame) -> pl.DataFrame:
    """The rows of each prompt's last token."""
    return residual.filter(pl.col("position") == pl.col("position").max().over("model", "prompt"))


def set_sizes(swaps: pl.DataFrame) -> dict[str, int]:
    """The number of names in each swap set."""
    counted = swaps.group_by("set", maintain_order=True).agg(pl.col("name").n_unique())
    return dict(counted.iter_rows())
