"""Ledgers: published figures as CSV files, one row a figure."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tokentrail.errors import ConfigError
from tokentrail.stages.reproduction.query import refused

NEEDED = ("id", "stage", "model", "input", "quantity", "measured", "value", "tolerance_kind", "tolerance")
OPTIONAL = ("seed", "unit", "needs_weights", "note")
KINDS = {
    "exact": "the same value",
    "abs": "within the tolerance",
    "rel": "within the tolerance times the value",
    "at_least": "the value or more, less the tolerance",
    "at_most": "the value or less, plus the tolerance",
    "report": "shown, not judged",
}
HOW = (
    "`measured` is the SQL query that finds a figure in the run's tables, as in SELECT probability FROM next_token "
    "WHERE prompt = 'alice' AND rank = 0, and is empty for what no stage measures"
)
NO_MODEL = "none"
"""What a figure that no single model gives has as its model."""


@dataclass(frozen=True)
class Figure:
    """One published figure."""

    id: str
    stage: str
    model: str
    input: str
    quantity: str
    measured: str
    """The query that finds it in the tables of a run, as `query.py` has it; empty if no stage measures it."""
    value: str
    tolerance_kind: str
    tolerance: float | None
    unit: str
    note: str
    needs_weights: bool
    place: str
    """Where it stands: the ledger and the line."""

    @property
    def published(self) -> Any:
        """The printed value: a number, a list, or text."""
        return parsed(self.value)


def parsed(printed: str) -> Any:
    """A number where the text is one (`2/3` too), a list where it is one in JSON, the text itself otherwise."""
    if printed.startswith("["):
        return json.loads(printed)
    try:
        return float(Fraction(printed))
    except (ValueError, ZeroDivisionError):
        return printed


def read_all(paths: Iterable[Path]) -> list[Figure]:
    """The figures of all ledgers, in order. Raises ConfigError for a file that is no ledger, or an id used twice."""
    found: dict[str, tuple[Path, Figure]] = {}
    for path in map(Path, paths):
        for figure in read(path):
            if figure.id in found:
                other = found[figure.id][0]
                where = f"{other} and {path}" if other != path else f"{path}, twice"
                raise ConfigError(f"the figure {figure.id!r} stands in {where}; give each figure an id of its own")
            found[figure.id] = (path, figure)
    return [figure for _, figure in found.values()]


def read(path: Path) -> list[Figure]:
    """The figures of one ledger. Raises ConfigError that names the file, the row and the remedy."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            columns = reader.fieldnames or []
            if missing := [name for name in NEEDED if name not in columns]:
                how = f"; {HOW}" if missing[0] == "measured" else ""
                raise ConfigError(f"the ledger {path} has no column {missing[0]!r}; it needs {', '.join(NEEDED)}{how}")
            if unknown := [name for name in columns if name not in NEEDED + OPTIONAL]:
                raise ConfigError(
                    f"the ledger {path} has the column {unknown[0]!r}, which means nothing; remove it, or rename it "
                    f"to one of {', '.join(NEEDED + OPTIONAL)}"
                )
            return [figure(row, f"{path}, line {reader.line_num}") for row in reader]
    except FileNotFoundError:
        raise ConfigError(f"ledgers names {path}, which is not there; correct the path or remove it") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"the ledger {path} is no CSV file in UTF-8: {error}; save it as one") from None
    except OSError as error:
        raise ConfigError(f"the ledger {path} cannot be read: {error.strerror}") from None


def figure(row: dict[str, str | None], where: str) -> Figure:
    if None in row or None in row.values():
        raise ConfigError(f"{where} has not as many cells as the header; quote a value that holds a comma")
    for name in ("id", "stage", "quantity", "value"):
        if not row[name]:
            raise ConfigError(f"{where} leaves {name!r} empty; fill it in")
    kind = row["tolerance_kind"]
    if kind not in KINDS:
        raise ConfigError(f"{where} has the tolerance_kind {kind!r}; it must be one of {', '.join(KINDS)}")
    try:
        tolerance = float(row["tolerance"]) if row["tolerance"] else None
        if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
            raise ValueError
    except ValueError:
        raise ConfigError(f"{where} has the tolerance {row['tolerance']!r}; it must be a number, 0 or more") from None
    if kind in ("abs", "rel") and tolerance is None:
        raise ConfigError(f"{where} is judged by {kind!r} but has no tolerance; give one")
    try:
        number = parsed(row["value"])
    except ValueError:
        raise ConfigError(f"{where} has the value {row['value']!r}, which begins like a list but is none") from None
    numeric = number if isinstance(number, list) else [number]
    if kind not in ("exact", "report") and not all(isinstance(each, int | float) for each in numeric):
        raise ConfigError(f"{where} is judged by {kind!r}, but its value {row['value']!r} is no number; use 'exact'")
    if row["measured"] and (why := refused(row["measured"])):
        raise ConfigError(f"{where} has a query that {why}")
    return Figure(
        **{name: row[name] for name in ("id", "stage", "input", "quantity", "measured", "value", "tolerance_kind")},
        model=row["model"] or NO_MODEL,
        tolerance=tolerance,
        unit=row.get("unit") or "",
        note=row.get("note") or "",
        needs_weights=row.get("needs_weights", "yes") == "yes",
        place=where,
    )
