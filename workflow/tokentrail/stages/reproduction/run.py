"""The tables of a run, and what a query finds in them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from tokentrail.errors import ConfigError
from tokentrail.forward.spec import Spec
from tokentrail.stages.reproduction import choice as choices
from tokentrail.stages.reproduction import views
from tokentrail.stages.reproduction.ledger import NO_MODEL, Figure
from tokentrail.stages.reproduction.query import Rows, rows_of


class NotRun(Exception):  # noqa: N818  (no error: an answer that a figure may have)
    """A figure has nothing to be held against; the message says why."""


def check(ledger: Iterable[Figure], tables: Mapping[str, pl.DataFrame]) -> None:
    """Raises ConfigError for a query that does not parse, or asks for what no run has.

    `tables` are those of a run by their names, with rows or without.
    """
    empty = Run({name: table.clear() for name, table in tables.items()}, {}, {}).context(NO_MODEL, choices.USUAL)
    for figure in ledger:
        try:
            if figure.measured:
                empty.execute(figure.measured, eager=True)
        except PolarsError as error:
            raise ConfigError(
                f"{figure.place} has a query that cannot run: {first_line(error)}; config/README.md lists every table "
                f"with its columns, and what else a query can read"
            ) from None


class Run:
    """What a run measured.

    `tables` maps every stage that writes one of a model to the rows of all models, of which there may be none; `specs`
    a model to its Spec; `schemes` the name of a quantizer scheme to its settings.
    """

    def __init__(
        self,
        tables: Mapping[str, pl.DataFrame],
        specs: Mapping[str, Spec],
        schemes: Mapping[str, dict[str, Any]],
    ):
        self.frames = {name: table.lazy() for name, table in (dict(tables) | views.of_models(specs)).items()}
        self.models, self.schemes = list(specs), schemes
        self.context = functools.cache(self._context)

    def _context(self, model: str, choice: choices.Choice) -> pl.SQLContext:
        """The rows of one model, or of all for `none`, with the quantized ones of one choice."""
        ours = pl.lit(True) if model == NO_MODEL else pl.col("model") == model
        frames = self.frames | choices.cut(self.frames, self.schemes, choice)
        return pl.SQLContext({name: frame.filter(ours) for name, frame in frames.items()})

    def measured(self, figure: Figure, choice: choices.Choice) -> Any:
        """What the figure's query finds: one value, or a list of those in one row or one column.

        Raises NotRun, with the reason, if it finds nothing.
        """
        if figure.model not in (NO_MODEL, *self.models):
            raise NotRun(f"the run has no model {figure.model}")
        if not figure.measured:
            computed = not figure.needs_weights and figure.tolerance_kind != "report"
            why = ", which needs no model; the tests of this workflow compute it" if computed else ""
            raise NotRun(f"no stage measures {figure.quantity}{why}")
        context, rows = self.context(figure.model, choice), rows_of(figure.measured)
        try:
            if rows and (why := absent(context, rows, figure.model)):
                raise NotRun(why)
            found = values(context.execute(figure.measured, eager=True), figure.place)
        except PolarsError as error:
            raise NotRun(f"the query of {figure.place}, fails on these tables: {first_line(error)}") from None
        if None in found:
            raise NotRun(reason(context, rows))
        if isinstance(figure.published, list):
            return found
        if len(found) != 1:
            number = f"{len(found)} values" if found else "no value"
            raise NotRun(f"the query of {figure.place}, finds {number} where one is printed; let it name one row")
        return found[0]


def values(found: pl.DataFrame, place: str) -> list[Any]:
    """What the query at `place` found, as a list: its one row, or its one column. Raises NotRun for a table."""
    if found.width > 1:
        if found.height > 1:
            size = f"{found.height} rows of {found.width} columns"
            raise NotRun(f"the query of {place}, finds {size}; let it select one row or one column")
        return list(found.row(0)) if found.height else []
    column = found.to_series()
    if column.dtype == pl.List and len(column) == 1:
        return column.to_list()[0] or []  # an aggregate of no rows is null
    return column.to_list()


def absent(context: pl.SQLContext, rows: Rows, model: str) -> str:
    """Why a query finds no rows: the table that has none, or the condition that leaves none; empty if it finds some."""
    if there(context, rows.table, rows.conditions):
        return ""
    if not there(context, rows.table, ()):
        return f"{rows.table} was not measured" + (f" for {model}" if model != NO_MODEL else "")
    tried = range(1, len(rows.conditions) + 1)
    first = next(kept for kept in tried if not there(context, rows.table, rows.conditions[:kept]))
    return f"{rows.table} has no row with {rows.conditions[first - 1]}"


def there(context: pl.SQLContext, table: str, conditions: Sequence[str]) -> bool:
    return context.execute(f"SELECT COUNT(*) FROM {table} WHERE {all_of(conditions)}", eager=True).item() > 0


def reason(context: pl.SQLContext, rows: Rows | None) -> str:
    """Why what a query finds is empty: in the words of its table, if that has a column for them."""
    if rows is None:
        return "what the query finds is empty"
    if "reason" in context.execute(f"SELECT * FROM {rows.table}").collect_schema():
        told = context.execute(f"SELECT reason FROM {rows.table} WHERE {all_of(rows.conditions)}", eager=True)
        if words := next(filter(None, told["reason"]), ""):
            return words
    return f"what the query finds in {rows.table} is empty"


def all_of(conditions: Sequence[str]) -> str:
    return " AND ".join(("TRUE", *conditions))


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
