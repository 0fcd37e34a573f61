"""Tables as Parquet files: checked, and whole or not there at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from tokentrail.errors import NotFiniteError, TableError
from tokentrail.tables.registry import schema_of

SCHEMA_VERSION = "2"
NOT_MEASURED = "not_measured"
"""The last column of every table: why what the row asks for was not measured; empty where it was."""


def frame(
    table: str, rows: list[dict[str, Any]] | list[pl.DataFrame], refused: list[dict[str, Any]] | None = None, **same
) -> pl.DataFrame:
    """Rows, as dicts or frames, as one frame with the columns of `table`, those of `same` filled in alike.

    It may have no rows. `refused` are rows with what was asked and why it was `not_measured`.
    """
    parts = [part for part in rows if isinstance(part, pl.DataFrame)]
    if len(parts) < len(rows):
        parts = [pl.DataFrame(rows, infer_schema_length=None)]
    filled = {key: pl.lit(value) for key, value in same.items()}
    made = pl.concat(parts).with_columns(**filled) if parts else schema_of(table).create_empty()
    if not refused:
        return made
    without = pl.DataFrame(refused, infer_schema_length=None).with_columns(model=filled["model"])
    return pl.concat([made, without], how="diagonal_relaxed")


@contextlib.contextmanager
def atomic_path(path: Path):
    """A temporary path beside `path` that becomes `path` when the block ends without an error.

    Leftovers of a killed writer of the same path are removed first.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        leftover.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write(table: str, frame: pl.DataFrame, path: Path, weights_sha256: str = "") -> None:
    """Check `frame` against the schema of `table` and put it at `path`, whole or not at all.

    Raises TableError if a column is missing, unknown or holds values outside its declared range, and NotFiniteError
    for NaN and infinities, which are never valid: a model's values can make them.
    """
    schema = schema_of(table)
    expected = list(schema.column_names())
    measured, without = divided(frame)
    if set(measured.columns) != set(expected):
        difference = sorted(set(measured.columns) ^ set(expected))
        raise TableError(f"table {table}: the columns {difference} are in the frame or in the schema, but not in both")
    check_finite(frame)
    try:
        checked = schema.validate(measured.select(expected), cast=True)
    except Exception as error:
        raise TableError(f"table {table} does not fit its schema: {error}") from error
    types = {**checked.schema, NOT_MEASURED: pl.String}
    without = without.cast({name: types[name] for name in without.columns})
    whole = pl.concat([checked, pl.DataFrame(schema=types), without], how="diagonal")
    metadata = {
        "schema": f"tokentrail.{table}",
        "schema_version": SCHEMA_VERSION,
        "weights_sha256": weights_sha256,
    }
    with atomic_path(path) as part:
        whole.write_parquet(part, compression="zstd", metadata=metadata)


def check_finite(frame: pl.DataFrame) -> None:
    """Raises NotFiniteError, naming the first row and column with NaN or infinity in it."""
    for name in frame.select(cs.float()).columns:
        bad = frame.filter(pl.col(name).is_nan() | pl.col(name).is_infinite())
        if bad.is_empty():
            continue
        row = bad.row(0, named=True)
        keys = [key for key in frame.columns if isinstance(row[key], str | int) and key != "model" and row[key] != ""]
        where = [f"{key} {row[key]}" for key in keys]
        raise NotFiniteError(
            f"{name} comes out as {row[name]} in {bad.height} of {frame.height} rows, first at {', '.join(where[:5])}: "
            f"a value of the model does not fit its number format; leave out what these rows ask for, or the model"
        )


def read(table: str, path: Path) -> pl.DataFrame:
    """The table at `path`, checked against the schema of `table`.

    Without the rows that say why something was not measured. Raises TableError if the file is missing, is not
    Parquet, or has other columns than the schema.
    """
    path = Path(path)
    if not path.is_file():
        raise TableError(f"table {table} is missing at {path}; run snakemake to make it")
    try:
        measured, _ = divided(pl.read_parquet(path))
        return schema_of(table).validate(measured)
    except Exception as error:
        raise TableError(
            f"table {table} at {path} is damaged or was made by another version; delete it and run snakemake again"
        ) from error


def divided(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows that were measured, and those that were not, which alone have the column that says why."""
    if NOT_MEASURED not in frame.columns:
        return frame, pl.DataFrame()
    why = pl.col(NOT_MEASURED)
    return frame.filter(why.is_null()).drop(NOT_MEASURED), frame.filter(why.is_not_null())


def refused(table: str, path: Path) -> list[dict[str, str]]:
    """What was asked of a model and not measured in the table at `path`: `stage`, `model`, `asked` and `reason`.

    A table may show such rows itself, as one of times does, in a column `reason` of its own.
    """
    schema = schema_of(table)
    own = [pl.col("reason").replace("", None)] if "reason" in schema.column_names() and schema.asked() else []
    rows = pl.read_parquet(path).with_columns(reason=pl.coalesce(NOT_MEASURED, *own))
    return [
        {
            "stage": table,
            "model": row["model"],
            "asked": ", ".join(f"{name} {row[name]}" for name in schema.asked() if row[name] not in (None, "")),
            "reason": row["reason"],
        }
        for row in rows.filter(pl.col("reason").is_not_null()).to_dicts()
    ]
