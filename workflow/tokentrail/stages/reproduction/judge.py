"""The table `reproduction`: every published figure beside what the run measured, and whether it is the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.stages.reproduction import figures
from tokentrail.stages.reproduction.figures import quantization
from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import Choice, NotRun, Run
from tokentrail.stages.reproduction.verdict import in_unit, judge, number, shown

UNPRINTED = {
    r"count_target_top1": "the other names are not printed, so the run has its own",
    r"min_fraction_of_rows_peaking_on_position_0_layer_\d+": "no number is printed",
}
"""Figures that depend on an input that is not printed, beside those that their ledger marks `report`."""


def measure(run: Run, ledger: Iterable[Figure]) -> pl.DataFrame:
    """Table `reproduction`, in the ledger's order.

    `reproduced` and `differs` are judged; `shown` is what a write-up reports of its own machine, or made with an
    input that it does not print; `not_run` has the reason in its note.
    """
    ledger = list(ledger)
    run = run.with_choice(chosen(run, ledger))
    return tables.frame("reproduction", [row(run, figure) for figure in ledger])


def row(run: Run, figure: Figure) -> dict[str, Any]:
    published = figure.published
    about = {
        "model": figure.model,
        "id": figure.id,
        "stage": figure.stage,
        "input": figure.input,
        "quantity": figure.quantity,
        "unit": figure.unit,
        "published": figure.value,
        "tolerance_kind": figure.tolerance_kind,
        "published_value": published if number(published) else None,
    }
    nothing = {"measured": "", "measured_value": None, "tolerance": None}
    try:
        measured = in_unit(figure, figures.measured(run, figure))
    except NotRun as reason:
        return about | nothing | {"status": "not_run", "note": noted(str(reason), figure.note)}
    about |= {"measured": shown(measured), "measured_value": float(measured) if number(measured) else None}
    why = unprinted(figure)
    if figure.tolerance_kind == "report" or why:
        return about | {"tolerance": None, "status": "shown", "note": noted(why, figure.note)}
    verdict = judge(figure, measured)
    status = "reproduced" if verdict.agrees else "differs"
    settled = run.choice.told if quantization.is_open(figure) else ""
    return about | {"tolerance": verdict.tolerance, "status": status, "note": noted(settled, figure.note)}


def unprinted(figure: Figure) -> str:
    return next((why for pattern, why in UNPRINTED.items() if re.fullmatch(pattern, figure.quantity)), "")


def noted(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def chosen(run: Run, ledger: list[Figure]) -> Choice:
    """Of the choices that a write-up on quantization leaves open, the one that reproduces most of its figures."""
    counted = quantization.tally(run, ledger)
    if not counted:
        return Choice(quantization.default(), "")
    best = max(counted, key=lambda choice: counted[choice])  # of several, the first
    return Choice(best, " ".join(told(counted, best)))


def told(counted: dict[tuple[str, str], int], best: tuple[str, str]) -> Iterator[str]:
    """The choice in words, and how the others fare."""
    yield f"with {named(best)}, {counted[best]} figures of quantization reproduce"
    if others := [f"{counted[choice]} with {named(choice)}" for choice in counted if choice != best]:
        yield f"({', '.join(others)})"


def named(choice: tuple[str, str]) -> str:
    return " and ".join(f"{key} {value}" for key, value in zip(quantization.CHOICES, choice, strict=True))
