"""Figures of a ledger of one's own: any cell of any table, as `table.column` with the row as the input."""

from __future__ import annotations

from typing import Any

import polars as pl

from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run


def cell(run: Run, figure: Figure, table: str, column: str) -> Any:
    """The cell of the one row that the input names: `prompt=alice; rank=0`."""
    rows = run.rows(table, figure.model)
    for part in filter(None, (part.strip() for part in figure.input.split(";"))):
        key, equals, value = part.partition("=")
        if not equals or key not in rows.columns:
            raise NotRun(f"{table} has no column {key!r}; the input must read column=value; column=value")
        rows = rows.filter(pl.col(key).cast(pl.String) == value)
    if column not in rows.columns:
        raise NotRun(f"{table} has no column {column}")
    if rows.height != 1:
        raise NotRun(f"{table} has {rows.height} rows with {figure.input or 'any input'}; name one row")
    value = rows[column][0]
    if value is None:
        raise NotRun(f"{column} is empty in that row of {table}")
    return value


FIGURES = {r"(\w+)\.(\w+)": cell}
