"""Rows of the quantization table that several charts and the report pick in the same way."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.charts.result import extremes

PARTS = {
    "tokens": "token table, both uses",
    "tokens.input": "token table as input only",
    "tokens.output": "token table as output only",
    "positions": "position table",
    "attention.qkv": "attention: q, k, v",
    "attention.out": "attention: output",
    "mamba2.in_proj": "Mamba2: input",
    "mamba2.out_proj": "Mamba2: output",
    "ffn.up": "FFN: up",
    "ffn.down": "FFN: down",
    "head": "output head",
    "compute": "all matrices of the layers",
    "all": "everything",
}
"""Choices of weights in the order in which they are shown, and their names in words."""
ALONE = tuple(part for part in PARTS if part not in ("compute", "all"))
SMALLEST = 1e-6
"""KL below which a chart does not tell values apart, in nats: float32 rounding reaches it."""
KL = "KL from float32, nats (log)"
CIRCULAR = 0.5
"""Share of the weights that stood on a scheme's codes before, from which a row does not show what its bits cost."""


def first_passage(frame: pl.DataFrame) -> pl.DataFrame:
    """What was measured on the first passage that each model can read, with `moved`, `low` and `high`: the mean KL over
    it and its interval.

    Schemes that gave no answers are left out. Without a passage `moved` is the KL on the prompt, without an interval.
    """
    measured = frame.filter(pl.col("status") == "ok")
    first = measured.filter(pl.col("passage") == pl.col("passage").first().over("model"))
    return first.with_columns(
        moved=pl.coalesce("mean_kl", "kl").clip(lower_bound=SMALLEST),
        low=pl.col("mean_kl_low").clip(lower_bound=SMALLEST),
        high=pl.col("mean_kl_high").clip(lower_bound=SMALLEST),
    )


def told(rows: pl.DataFrame, settings: dict[str, Any], at: dict[str, str]) -> str:
    """How far each model's predictions move, in words: over its first passage or, without one, on the prompt."""
    return extremes(
        rows.with_columns(told=pl.coalesce("mean_kl", "kl")), "told", "KL from float32 in nats", settings, at
    )


def is_circular(row: dict[str, Any]) -> bool:
    """Whether most of the weights of a row stood on its codes before, as the source stores them."""
    return (row["on_codes"] or 0) >= CIRCULAR


def headline(rows: pl.DataFrame) -> dict[str, Any] | None:
    """The packed row with the fewest bytes, of equals the first; None if nothing ran packed.

    Bytes follow from the shapes, so that no time and no answer decides which scheme is spoken of. `rows`: one model and
    passage.
    """
    packed = rows.filter(pl.col("execution") == "packed").sort("payload_bytes", maintain_order=True)
    return packed.row(0, named=True) if packed.height else None


def counterpart(rows: pl.DataFrame, row: dict[str, Any]) -> dict[str, Any] | None:
    """The symmetric row beside an asymmetric one, or the reverse; None if there is none. `rows`: one model and passage.

    Bits, group size, weights, execution and everything else that is done beyond the plain scheme are the same.
    """
    method = set(row["method"].split(", ")) - {"plain"} ^ {"asymmetric"}
    alike = (pl.col(name).eq_missing(pl.lit(row[name])) for name in ("bits", "group_size", "families", "execution"))
    for found in rows.filter(*alike).to_dicts():
        if set(found["method"].split(", ")) - {"plain"} == method:
            return found
    return None


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Simulated rows of plain schemes on everything, one for each number of bits and group size."""
    rows = frame.filter(pl.col("execution") == "simulated", pl.col("method") == "plain", pl.col("families") == "all")
    rows = rows.filter(pl.col("group_size").is_not_null())
    return rows.unique(["model", "bits", "group_size"], keep="first", maintain_order=True)


def sweep(rows: pl.DataFrame, over: str, at: str) -> pl.DataFrame:
    """The rows of `plain` in which `over` varies and `at` does not: for each model, where there are most of them.

    Of two values of `at` with as many rows, the one that comes first counts.
    """
    counted = rows.group_by("model", at, maintain_order=True).agg(pl.col(over).n_unique().alias("points"))
    widest = counted.sort("points", descending=True, maintain_order=True).unique(
        "model", keep="first", maintain_order=True
    )
    kept = widest.filter(pl.col("points") > 1).select("model", at)
    return rows.join(kept, on=["model", at], how="semi", maintain_order="left").sort("model", over)


def by_part(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that quantize one part at a time, and beside them the sets with as many bits in groups as large.

    The scheme with most single parts counts, and of two the first.
    """
    simulated = frame.filter(pl.col("execution") == "simulated", pl.col("method") == "plain")
    single = simulated.filter(pl.col("families").is_in(ALONE))
    counted = single.group_by("model", "scheme", maintain_order=True).agg(
        pl.len().alias("parts"), pl.col("bits", "group_size").first()
    )
    chosen = counted.sort("parts", descending=True, maintain_order=True).unique(
        "model", keep="first", maintain_order=True
    )
    alike = chosen.filter(pl.col("parts") > 1).select("model", "bits", "group_size")
    rows = simulated.filter(pl.col("families").is_in(list(PARTS)))
    rows = rows.join(alike, on=["model", "bits", "group_size"], how="semi", maintain_order="left", nulls_equal=True)
    return rows.unique(["model", "families"], keep="first", maintain_order=True)


def whole_models(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows on everything, on all matrices of the layers, and unquantized, with their payload in MiB."""
    rows = frame.filter(pl.col("families").is_in(["", "compute", "all"]))
    return rows.with_columns(mib=pl.col("payload_bytes") / (1 << 20))
