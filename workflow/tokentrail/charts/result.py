"""What a chart shows, in a few words with numbers, for those who do not see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from tokentrail.charts.looks import looks
from tokentrail.charts.text import printable, size, visible


def extremes(
    rows: pl.DataFrame,
    value: str,
    what: str,
    settings: dict[str, Any],
    at: Mapping[str, str],
    show: Callable[[Any], str] = size,
) -> str:
    """For each model, the smallest and the largest of its values, where they are, and how many values there are.

    `value` names their column and `what` says what they are. `at` gives the columns that say where a value is, each
    with the word that it follows: `{"prompt": "", "layer": "layer"}` makes `alice, layer 3`. Values that `show` writes
    in the same way are ties: what several rows share is told with their number and no place.
    """
    said = [f"{what}, for each model from the smallest to the largest"]
    for model, look in looks(settings).items():
        own = rows.filter(pl.col("model") == model, pl.col(value).is_not_null()).sort(value, maintain_order=True)
        if not own.height:
            continue
        shown = [show(x) for x in own[value]]
        ends = dict.fromkeys((shown[0], shown[-1]))
        told = " to ".join(f"{end} ({where(own.filter(pl.Series(shown) == end), own.height, at)})" for end in ends)
        said.append(f"{look.label}: {told}, n = {own.height:,}")
    return ". ".join(said) + "."


def where(rows: pl.DataFrame, of: int, at: Mapping[str, str]) -> str:
    """The place of the one row that has a value, or how many of all rows have it."""
    if rows.height > 1:
        return f"all {of:,}" if rows.height == of else f"{rows.height:,} of {of:,}"
    row = rows.row(0, named=True)
    known = {column: word for column, word in at.items() if row[column] not in ("", None)}
    return ", ".join(f"{word} {shown(row[column])}".strip() for column, word in known.items())


def shown(value: Any) -> str:
    """A value of a column as a word. A text that begins or ends with a space is a token."""
    if not isinstance(value, str):
        return str(value)
    return printable(value) if value == value.strip() else visible(value)
