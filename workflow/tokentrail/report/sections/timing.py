"""How long decode and prefill take, beside the machine's limits, and what that costs."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import percent, printable, size
from tokentrail.charts.timed import OURS
from tokentrail.report.words import counted

KINDS = {"decode": "Decode", "batch": "Decode", "prefill": "Prefill"}
CASE = ["model", "kind", "context", "batch"]


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, sentences, its cases with their prices, and the machine."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["timing_summary"].filter(pl.col("model") == model)
        if not rows.height:
            continue
        cost = tables["cost"].filter(pl.col("model") == model)
        machine = tables["machine"].filter(pl.col("model") == model)
        found.append(
            {
                "index": index,
                "limits": limits(rows),
                "drift": drift(rows),
                "spread": spread(rows),
                "peers": peers(rows),
                "cases": named(rows),
                "prices": named(cost.filter(pl.col("kind") == "batch")),
                "machine": [(fact, printable(value)) for fact, value in machine.select("fact", "value").iter_rows()],
            }
        )
    return found


def limits(rows: pl.DataFrame) -> Markup:
    """How near ours comes to the two limits. `rows`: timing_summary, one model."""
    ours = rows.filter(pl.col("implementation") == OURS, pl.col("status") == "ok")
    threads = counted(rows["threads"][0], "thread")
    measured = Markup(
        "With {}, the same process measured {} GFLOP/s in a large float32 product and {} GB/s reading memory."
    )
    said = [measured.format(threads, size(rows["matrix_peak"][0] / 1e9), size(rows["read_bandwidth"][0] / 1e9))]
    for kinds, column, what in (
        (
            ("decode", "batch"),
            "fraction_of_bandwidth",
            "Decode reads what it must read once at up to {} of that bandwidth",
        ),
        (("prefill",), "fraction_of_peak", "prefill computes at up to {} of that peak"),
    ):
        of_kind = ours.filter(pl.col("kind").is_in(kinds))
        if of_kind.height:
            most = of_kind.sort(column, descending=True, maintain_order=True).row(0, named=True)
            said.append(Markup(what + " ({})").format(percent(most[column]), place(most)))
    return Markup(" ").join(said[:1]) + Markup(" {}.").format(Markup("; ").join(said[1:])) if said[1:] else said[0]


def drift(rows: pl.DataFrame) -> Markup:
    """The largest shift between the two blocks."""
    moved = rows.filter(pl.col("drift").is_not_null()).sort(pl.col("drift").abs(), descending=True, maintain_order=True)
    if moved.is_empty():
        return Markup()
    most = moved.row(0, named=True)
    return Markup("From the first block of {} to its repetition, medians moved by {} at most ({}{}).").format(
        counted(most["rounds"], "round"),
        f"{abs(most['drift']):.1%}",
        place(most),
        "" if most["implementation"] == OURS else f", {most['implementation']}",
    )


def spread(rows: pl.DataFrame) -> str:
    """How many rounds a median is of, and how surely its interval holds it: `6 rounds, 96.9%`."""
    timed = rows.filter(pl.col("status") == "ok")
    if timed.is_empty():
        return ""
    return f"{counted(timed['rounds'][0], 'round')}, {percent(timed['level'][0])}"


def peers(rows: pl.DataFrame) -> Markup:
    """Ours against the fastest of the others, case by case; empty without others."""
    timed = rows.filter(pl.col("status") == "ok")
    others = timed.filter(pl.col("implementation") != OURS)
    if others.is_empty():
        return Markup()
    fastest = others.group_by(CASE, maintain_order=True).agg(theirs=pl.col("median_ms").min())
    ours = timed.filter(pl.col("implementation") == OURS).join(fastest, on=CASE, how="inner", maintain_order="left")
    ratios = ours.with_columns(ratio=pl.col("theirs") / pl.col("median_ms")).sort("ratio")
    least, most = ratios.row(0, named=True), ratios.row(-1, named=True)
    return Markup(
        "Against the faster of transformers’ paths in the same rounds, ours is {} to {} times as fast ({}; {})."
    ).format(size(least["ratio"]), size(most["ratio"]), place(least), place(most))


def place(row: dict[str, Any]) -> str:
    """A case in words."""
    tokens = counted(row["context"], "token")
    if row["kind"] == "prefill":
        return f"prefill of {tokens}"
    return f"{counted(row['batch'], 'row')} after {tokens}"


def named(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows with the kind of their case in words."""
    return rows.with_columns(name=pl.col("kind").replace_strict(KINDS, return_dtype=pl.String)).to_dicts()
