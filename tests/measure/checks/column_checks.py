"""Checks of whole tables: each says which columns it works out itself, and is held to all of them, row by row."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import polars as pl
from tokentrail.rooms import schemas

CLAIMED: dict[str, set[str]] = {}
"""The columns of each table that some check works out."""

EXEMPT: dict[tuple[str, str], str] = {
    ("quantization_timing", "resident_bytes"): "what a process grows by depends on the allocator and on the machine",
}
"""Columns that no check works out, and why."""

CHECKED_ELSEWHERE = {
    "reproduction": "each query is held against made-up tables in tests/published/test_published_queries.py",
}
"""Tables that have no check here, and where theirs is."""


def recomputes(table: str, *columns: str, key: tuple[str, ...], rel: float = 1e-7, close: float = 1e-10):
    """A test that returns the frame of `table` and the rows that it must have, with `columns` worked out otherwise.

    The decorated test compares them: rows are matched by the columns of `key`, floats may differ by the share `rel`
    or by `close`, everything else must be equal. `model` is checked for every table and need not be named.
    """
    CLAIMED.setdefault(table, set()).update(columns, {"model"})

    def decorate(check: Callable):
        @functools.wraps(check)
        def test(*args, **kwargs):
            frame, rows = check(*args, **kwargs)
            compare(table, frame, rows, columns, key, rel, close)

        return test

    return decorate


def compare(
    table: str, frame: pl.DataFrame, rows: list[dict], columns: tuple[str, ...], key: tuple[str, ...], rel, close
) -> None:
    frame = schemas()[table].validate(frame, cast=True)
    assert set(frame["model"]) <= {"tiny"}, table
    found, expected = by_key(frame.to_dicts(), key), by_key(rows, key)
    assert found.keys() == expected.keys(), (
        f"{table}: rows that one side lacks: {list(found.keys() ^ expected.keys())[:6]}"
    )
    for at, row in expected.items():
        assert set(row) == set(columns), f"{table}: the check works out {sorted(row)} and claims {sorted(columns)}"
        for column, value in row.items():
            assert same(found[at][column], value, rel, close), (
                f"{table}.{column} of {dict(zip(key, at, strict=True))}: the table has {found[at][column]!r}, "
                f"by its definition it is {value!r}"
            )


def by_key(rows: list[dict], key: tuple[str, ...]) -> dict[tuple, dict]:
    found = {tuple(row[column] for column in key): row for row in rows}
    assert len(found) == len(rows), f"rows are not told apart by {key}"
    return found


def same(found, expected, rel: float, close: float) -> bool:
    if isinstance(expected, float) and found is not None:
        return math.isclose(found, expected, rel_tol=rel, abs_tol=close)
    return type(found) is type(expected) and found == expected
