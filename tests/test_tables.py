"""Tables are written whole or not at all, and only if they fit their schema."""

import polars as pl
import pytest
from tokentrail import tables
from tokentrail.errors import NotFiniteError, TableError
from tokentrail.rooms import schemas

ROWS = pl.DataFrame(
    {
        "model": ["m"],
        "prompt": ["p"],
        "experiment": [""],
        "levels": [""],
        "tokens": [5],
        "step": [0],
        "decoding": ["none"],
        "top1_token": [" a"],
        "top1_probability": [0.5],
        "target_probability": [0.5],
        "target_rank": [0],
        "tokens_left": [97],
        "entropy_bits": [1.0],
        "effective_choices": [2.0],
        "top5_mass": [1.0],
        "tokens_for_90_percent": [2],
        "vocabulary": [97],
    }
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results" / "distribution.parquet"


def test_round_trip(path):
    tables.write("distribution", ROWS.select(reversed(ROWS.columns)), path, weights_sha256="a" * 64)
    assert tables.read("distribution", path).equals(ROWS), "columns come in the declared order"
    metadata = pl.read_parquet_metadata(path)
    assert metadata["weights_sha256"] == "a" * 64
    assert metadata["schema"] == "tokentrail.distribution"
    assert metadata["schema_version"] == tables.SCHEMA_VERSION


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_a_model_overflowed_to_is_a_sentence_of_its_own(path, value):
    """Not the schema's words: what a model's values make of a table is no fault of the program."""
    with pytest.raises(NotFiniteError) as caught:
        tables.write("distribution", ROWS.with_columns(entropy_bits=pl.lit(value)), path)
    sentence = str(caught.value)
    assert sentence.startswith(f"entropy_bits comes out as {value} in 1 of 1 rows, first at prompt p,")
    assert "schema" not in sentence and "\n" not in sentence and not path.exists()


def test_two_writes_are_byte_identical(path):
    tables.write("distribution", ROWS, path)
    first = path.read_bytes()
    tables.write("distribution", ROWS, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda f: f.drop("vocabulary"), "vocabulary"),
        (lambda f: f.with_columns(extra=1), "extra"),
        (lambda f: f.with_columns(top5_mass=2.0), "top5_mass"),
        (lambda f: f.with_columns(vocabulary=pl.lit(None, dtype=pl.Int64)), "vocabulary"),
        (lambda f: f.with_columns(tokens_for_90_percent=0), "tokens_for_90_percent"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused(path, change, named):
    tables.write("distribution", ROWS, path)
    before = path.read_bytes()
    with pytest.raises(TableError, match=named):
        tables.write("distribution", change(ROWS), path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_failing_writer_leaves_nothing(path):
    with pytest.raises(ZeroDivisionError), tables.atomic_path(path) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert list(path.parent.iterdir()) == []


def test_leftovers_of_a_killed_writer_are_removed(path):
    path.parent.mkdir()
    (path.parent / f".{path.name}.abc.part").write_text("half")
    tables.write("distribution", ROWS, path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_reading_says_what_is_wrong(path):
    with pytest.raises(TableError, match="missing"):
        tables.read("distribution", path)
    path.parent.mkdir()
    path.write_bytes(b"PAR1")
    with pytest.raises(TableError, match="damaged"):
        tables.read("distribution", path)


def test_every_column_is_explained():
    for name, schema in schemas().items():
        assert schema.__doc__, name
        assert schema.column_names()[0] == "model"
        for column, declared in schema.columns().items():
            assert declared.description, f"{name}.{column}"


def test_what_was_not_measured_is_kept_apart_with_its_reason(path):
    asked = {"prompt": "long", "decoding": "none"}
    whole = tables.frame("distribution", [ROWS], [asked | {tables.NOT_MEASURED: "too long"}], model="m")
    tables.write("distribution", whole, path)
    assert tables.read("distribution", path).equals(ROWS)
    (row,) = tables.refused("distribution", path)
    assert row == {"stage": "distribution", "model": "m", "asked": "prompt long, decoding none", "reason": "too long"}


def test_a_table_of_nothing_but_refusals_can_be_read(path):
    tables.write("distribution", tables.frame("distribution", [], [{tables.NOT_MEASURED: "why"}], model="m"), path)
    assert tables.read("distribution", path).is_empty()
    assert [row["reason"] for row in tables.refused("distribution", path)] == ["why"]


@pytest.mark.parametrize("name", [name for name, schema in schemas().items() if "reason" in schema.column_names()])
def test_a_table_with_reasons_of_its_own_says_what_they_are_of(name):
    """Those that another table says already, as a summary does, name no column."""
    asked = schemas()[name].asked()
    assert set(asked) < set(schemas()[name].column_names())
    assert not {"model", "reason", "status"} & set(asked)
