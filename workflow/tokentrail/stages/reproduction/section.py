"""Which published figures reproduce."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import STATUSES, ordered
from tokentrail.charts.text import printable, whole
from tokentrail.wording.words import counted, listed, sentence_case

WIDEST = 120
"""Characters of a value that a cell shows."""


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> dict[str, Any]:
    """The count in a sentence, the counts of each subject, the figures that differ, and the rest by status."""
    figures = tables["reproduction"]
    return {
        "leading": leading(figures),
        "choice": choice(figures),
        "stages": by_stage(figures),
        "differing": cells(figures.filter(pl.col("status") == "differs")),
        "shown": cells(figures.filter(pl.col("status") == "shown")),
        "reasons": reasons(figures.filter(pl.col("status") == "not_run")),
        "statuses": STATUSES,
    }


def leading(figures: pl.DataFrame) -> Markup:
    """How many of how many reproduce. `figures`: reproduction."""
    tally = dict(figures.group_by("status").len().iter_rows())
    good, bad = tally.get("reproduced", 0), tally.get("differs", 0)
    if not good + bad:
        sentence = Markup("Of {}, none could be judged").format(counted(figures.height, "published figure"))
    else:
        sentence = Markup("<b>{} of {} that were judged reproduce</b>").format(
            whole(good), counted(good + bad, "published figure")
        )
        sentence += Markup("; {} {}").format(whole(bad), "differs" if bad == 1 else "differ") if bad else Markup("")
    rest = []
    if shown := tally.get("shown", 0):
        are = "is" if shown == 1 else "are"
        rest.append(
            f"{counted(shown, 'figure')} of the author’s own machine, or of an input that is not printed, {are} "
            "shown and not judged"
        )
    if missing := tally.get("not_run", 0):
        rest.append(f"{counted(missing, 'figure')} {'was' if missing == 1 else 'were'} not run")
    return sentence + (Markup(". {}.").format(sentence_case(str(listed(rest)))) if rest else Markup("."))


def choice(figures: pl.DataFrame) -> str:
    """Which of the choices that a write-up on quantization leaves open was taken, and how the others fare."""
    notes = figures.filter(pl.col("note").str.starts_with("with "))["note"]
    return printable(notes[0].split("; ")[0]) if len(notes) else ""


def by_stage(figures: pl.DataFrame) -> list[dict[str, Any]]:
    """For each subject, how many figures there are of each status."""
    counts = figures.group_by("stage", "status").len()
    tally = {(stage, status): number for stage, status, number in counts.iter_rows()}
    return [
        {"stage": printable(stage)} | {status: tally.get((stage, status), 0) for status in STATUSES}
        for stage in ordered(figures, "stage")
    ]


def cells(figures: pl.DataFrame) -> list[dict[str, str]]:
    """What a table shows of each figure; its text is untrusted."""
    columns = ("model", "stage", "input", "quantity", "unit", "published", "measured", "note")
    return [
        {column: shortened(printable(row[column])) for column in columns}
        | {"tolerance": "" if row["tolerance"] is None else f"{row['tolerance']:.2g}"}
        for row in figures.to_dicts()
    ]


def shortened(text: str) -> str:
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def reasons(figures: pl.DataFrame) -> list[dict[str, Any]]:
    """Why figures were not run, the most frequent reason first, with how many and which subjects."""
    why = figures.with_columns(why=pl.col("note").str.split("; ").list.first())
    # Which quantity no stage measures is the table's business; here they are one reason.
    why = why.with_columns(
        why=pl.when(pl.col("why").str.starts_with("no stage measures"))
        .then(
            pl.col("why").str.replace(r"measures \S+?(,|$)", "measures them$1").str.replace("which needs", "which need")
        )
        .otherwise("why")
    )
    grouped = why.group_by("why", maintain_order=True).agg(
        figures=pl.len(), stages=pl.col("stage").unique(maintain_order=True).str.join(", ")
    )
    rows = grouped.sort("figures", descending=True, maintain_order=True).to_dicts()
    return [row | {"why": printable(row["why"]), "stages": printable(row["stages"])} for row in rows]
