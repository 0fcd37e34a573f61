"""The published figures, and when a measured value is one of them."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[2] / "config/published/published.csv"
ROWS = {row["id"]: row for row in csv.DictReader(PATH.open(encoding="utf-8", newline=""))}


def judged(needs: str) -> list[str]:
    """The ids of the figures that need `no` weights, or a `tokenizer` alone, and are to be judged."""
    return [
        name
        for name, row in ROWS.items()
        if row["needs_weights"] == needs and row["tolerance_kind"] in ("exact", "abs")
    ]


def value(row: dict[str, str]) -> Any:
    """The printed value: a number, a list, or text."""
    printed = row["value"]
    if printed.startswith("["):
        return json.loads(printed)
    try:
        return Fraction(printed)
    except ValueError:
        return printed


def agrees(row: dict[str, str], measured: Any) -> bool:
    printed = value(row)
    if row["tolerance_kind"] == "abs":
        if isinstance(printed, list):
            return all(abs(a - b) <= float(row["tolerance"]) for a, b in zip(printed, measured, strict=True))
        return abs(float(printed) - float(measured)) <= float(row["tolerance"])
    if row["tolerance_kind"] == "rel":
        return abs(float(printed) - float(measured)) <= float(row["tolerance"]) * abs(float(printed))
    if isinstance(printed, Fraction) and not isinstance(measured, str):
        return abs(float(printed) - float(measured)) <= 1e-12 * max(abs(float(printed)), 1)
    return plain(printed) == plain(measured)


def plain(something: Any) -> Any:
    """Tuples as lists, so that a shape is a shape."""
    return [plain(part) for part in something] if isinstance(something, list | tuple) else something
