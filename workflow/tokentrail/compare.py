"""Two runs, table by table: `python -m tokentrail.compare results/one results/other`.

Exits with 1 if a table that holds no times is in one run alone or has other rows in the other.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from tokentrail.rooms import timed


def differences(one: Path, other: Path) -> Iterator[tuple[Path, str]]:
    """Each table that is not the same to the byte, and how it differs."""
    names = {path.relative_to(folder) for folder in (one, other) for path in folder.rglob("*.parquet")}
    for name in sorted(names):
        here, there = one / name, other / name
        if not (here.is_file() and there.is_file()):
            yield name, f"only in {one if here.is_file() else other}"
        elif here.read_bytes() != there.read_bytes():
            yield name, between(pl.read_parquet(here), pl.read_parquet(there))


def between(one: pl.DataFrame, other: pl.DataFrame) -> str:
    """How two tables differ: in columns, in the number of rows, or in values, and by how much at most."""
    if one.schema != other.schema:
        changed = {str(column) for column in one.schema.items() ^ other.schema.items()}
        return f"other columns: {', '.join(sorted(changed))}"
    if one.height != other.height:
        return f"{one.height} and {other.height} rows"
    told = []
    for column in one.columns:
        a, b = one[column], other[column]
        unequal = a.ne_missing(b)
        if unequal.any():
            by = f", by {(a - b).abs().max():.2g} at most" if a.dtype.is_float() else ""
            told.append(f"{column} in {unequal.sum()} of {one.height} rows{by}")
    return "; ".join(told) or "the same values, stored otherwise"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    arguments = parser.parse_args()
    status = 0
    for name, how in differences(arguments.one, arguments.other):
        status = max(status, int(name.stem not in timed() and not how.startswith("the same values")))
        print(f"{name}: {how}")
    return status


if __name__ == "__main__":
    sys.exit(main())
