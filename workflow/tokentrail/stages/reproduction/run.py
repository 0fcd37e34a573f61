"""The tables of a run, and how values are picked from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from tokentrail.forward.spec import Spec


class NotRun(Exception):  # noqa: N818  (no error: an answer that a figure may have)
    """A figure has nothing to be held against; the message says why."""


@dataclass(frozen=True)
class Choice:
    """What a write-up leaves open, as settled for this run, and in words how it was."""

    of: tuple[str, ...]
    told: str


class Run:
    """What a run measured.

    `tables` maps a stage to the rows of all models; `specs` a model to its Spec; `schemes` the name of a quantizer
    scheme to its settings; `targets` a prompt to its expected next word. `choice` settles what quantization's
    write-up leaves open.
    """

    def __init__(
        self,
        tables: Mapping[str, pl.DataFrame],
        specs: Mapping[str, Spec],
        targets: Mapping[str, str],
        schemes: Mapping[str, dict[str, Any]],
        choice: Choice | None = None,
    ):
        self.tables, self.specs, self.targets, self.schemes = tables, specs, targets, schemes
        self.choice = choice

    def with_choice(self, choice: Choice) -> Run:
        """The same run, with what its write-up leaves open settled."""
        return Run(self.tables, self.specs, self.targets, self.schemes, choice)

    @property
    def models(self) -> list[str]:
        return list(self.specs)

    def spec(self, model: str) -> Spec:
        """Raises NotRun if the run has no such model."""
        if model not in self.specs:
            raise NotRun(f"the run has no model {model}")
        return self.specs[model]

    def rows(self, table: str, model: str, **where: Any) -> pl.DataFrame:
        """The rows of a model in which each named column has the value; at least one. Raises NotRun otherwise."""
        self.spec(model)
        rows = self.tables.get(table)
        if rows is None:
            raise NotRun(f"the run has no table {table}")
        rows = rows.filter(pl.col("model") == model)
        if rows.is_empty():
            raise NotRun(f"{table} was not measured for {model}")
        for column, value in where.items():
            if column not in rows.columns:
                raise NotRun(f"{table} has no column {column}")
            rows = rows.filter(pl.col(column) == value)
            if rows.is_empty():
                raise NotRun(f"{table} has no row with {column} {value}")
        return rows

    def row(self, table: str, model: str, **where: Any) -> dict[str, Any]:
        """The one row. Raises NotRun if there is none, or more than one."""
        rows = self.rows(table, model, **where)
        if rows.height > 1:
            raise NotRun(f"{table} has {rows.height} rows with {where}, so the figure does not say which it is")
        return rows.row(0, named=True)

    def last(self, table: str, model: str, column: str = "position", **where: Any) -> pl.DataFrame:
        """The rows at the last position of a prompt."""
        rows = self.rows(table, model, **where)
        return rows.filter(pl.col(column) == pl.col(column).max().over("prompt"))
