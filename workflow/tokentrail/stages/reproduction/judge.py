"""The table `reproduction`: every published figure beside what the run measured, and whether it is the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.stages.reproduction import choice
from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run
from tokentrail.stages.reproduction.verdict import in_unit, judge, number, shown


def measure(run: Run, ledger: Iterable[Figure]) -> pl.DataFrame:
    """Table `reproduction`, in the ledger's order.

    `reproduced` and `differs` are judged; `shown` is what a write-up reports of its own machine, or made with an
    input that it does not print; `not_run` has the reason in its note.
    """
    ledger = list(ledger)
    counted = tally(run, ledger)
    taken = choice.most(counted)
    settled = choice.told(counted, taken)
    return tables.frame("reproduction", [row(run, figure, taken, settled) for figure in ledger])


def tally(run: Run, ledger: list[Figure]) -> dict[choice.Choice, int]:
    """How many of the figures that depend on a choice each choice that was run reproduces."""
    asked = [figure for figure in ledger if choice.is_open(figure) and figure.tolerance_kind != "report"]
    return {each: sum(reproduces(run, figure, each) for figure in asked) for each in choice.choices(run.schemes)}


def reproduces(run: Run, figure: Figure, taken: choice.Choice) -> bool:
    try:
        return judge(figure, in_unit(figure, run.measured(figure, taken))).agrees
    except NotRun:
        return False


def row(run: Run, figure: Figure, taken: choice.Choice, settled: str) -> dict[str, Any]:
    """A figure's row. `settled`: in words, how the choice that was `taken` came about."""
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
        measured = in_unit(figure, run.measured(figure, taken))
    except NotRun as reason:
        return about | nothing | {"status": "not_run", "note": noted(str(reason), figure.note)}
    about |= {"measured": shown(measured), "measured_value": float(measured) if number(measured) else None}
    if figure.tolerance_kind == "report":
        return about | {"tolerance": None, "status": "shown", "note": figure.note}
    verdict = judge(figure, measured)
    status = "reproduced" if verdict.agrees else "differs"
    said = settled if choice.is_open(figure) else ""
    return about | {"tolerance": verdict.tolerance, "status": status, "note": noted(said, figure.note)}


def noted(*parts: str) -> str:
    return "; ".join(filter(None, parts))
