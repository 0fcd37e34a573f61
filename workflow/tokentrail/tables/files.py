"""Tables as Parquet files: checked, and whole or not there at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import polars as pl
import polars.selectors as cs

from tokentrail.errors import NotFiniteError, TableError
from tokentrail.tables.registry import schema_of

SCHEMA_VERSION = "1"


def frame(table: str, rows: list[dict], **same) -> pl.DataFrame:
    """Rows as a frame with the columns of `table`, those of `same` filled in alike; also when there are no rows."""
    if not rows:
        return schema_of(table).create_empty()
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        **{key: pl.lit(value) for key, value in same.items()}
    )


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
    if set(frame.columns) != set(expected):
        difference = sorted(set(frame.columns) ^ set(expected))
        raise TableError(f"table {table}: the columns {difference} are in the frame or in the schema, but not in both")
    check_finite(frame)
    try:
        checked = schema.validate(frame.select(expected), cast=True)
    except Exception as error:
        raise TableError(f"table {table} does not fit its schema: {error}") from error
    metadata = {
        "schema": f"tokentrail.{table}",
        "schema_version": SCHEMA_VERSION,
        "weights_sha256": weights_sha256,
    }
    with atomic_path(path) as part:
        checked.write_parquet(part, compression="zstd", metadata=metadata)


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

    Raises TableError if the file is missing, is not Parquet, or has other columns than the schema.
    """
    path = Path(path)
    if not path.is_file():
        raise TableError(f"table {table} is missing at {path}; run snakemake to make it")
    try:
        frame = pl.read_parquet(path)
        return schema_of(table).validate(frame)
    except Exception as error:
        raise TableError(
            f"table {table} at {path} is damaged or was made by another version; delete it and run snakemake again"
        ) from error
