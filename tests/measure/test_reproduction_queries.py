"""The queries of ledgers: what they find in tables that were made up, what they may not ask, and what is said then."""

from __future__ import annotations

import re

import polars as pl
import pytest
from synthetic_run import GRANITE, HALF, QWEN3, figure, run, tables
from tokentrail.errors import ConfigError
from tokentrail.stages.reproduction import judge
from tokentrail.stages.reproduction.ledger import NO_MODEL
from tokentrail.stages.reproduction.query import Rows, refused, rows_of
from tokentrail.stages.reproduction.run import NotRun, check

FRANCE = "FROM next_token WHERE prompt = 'capital-france'"
USUAL = ("largest_code", "input")


@pytest.mark.parametrize(
    ("query", "about", "found"),
    [
        (f"SELECT probability {FRANCE} AND rank = 1", {}, 0.3),
        ("select probability from NEXT_TOKEN where prompt = 'capital-france' and rank = 0", {"model": GRANITE}, 0.4),
        (f"SELECT rank + 1 {FRANCE} AND is_target", {}, 5),
        (f"SELECT COUNT(*) {FRANCE}", {}, 3),
        (f"SELECT COUNT(*) {FRANCE}", {"model": NO_MODEL}, 4),
        (f"SELECT DISTINCT token {FRANCE} AND rank = 0", {"model": NO_MODEL}, " the"),
        (f"SELECT token {FRANCE} ORDER BY rank", {"value": "[]"}, [" the", " now", " Paris"]),
        (f"SELECT rank, token {FRANCE} AND rank = 1", {"value": "[]"}, [1, " now"]),
        (f"SELECT ARRAY_AGG(rank ORDER BY rank) FILTER (WHERE rank > 0) {FRANCE}", {"value": "[]"}, [1, 4]),
        (f"SELECT ARRAY_AGG(rank) FILTER (WHERE rank > 4) {FRANCE}", {"value": "[]"}, []),
        (f"SELECT COUNT(*) FILTER (WHERE rank > 4) {FRANCE}", {}, 0),
        (f"SELECT rank = 0 {FRANCE} AND token = ' the'", {}, True),
        ("SELECT width FROM models", {}, 768),
        ("SELECT vocabulary, width FROM models", {"value": "[]"}, [50257, 768]),
        ("SELECT learned_positions IS NOT NULL FROM models", {"model": QWEN3}, False),
        ("SELECT DISTINCT heads FROM sublayers WHERE cell = 'attention'", {"model": QWEN3}, 16),
        ("SELECT cell FROM sublayers WHERE layer = 28 AND name = 'mixer'", {"model": GRANITE}, "mamba2"),
        ("SELECT COUNT(*) FROM sublayers WHERE cell = 'mamba2'", {"model": GRANITE}, 28),
        ("SELECT DISTINCT rope_theta FROM sublayers WHERE name = 'mixer'", {"model": QWEN3}, 1e6),
        ("SELECT DISTINCT inner_width FROM sublayers WHERE name = 'ffn'", {}, 3072),
        ("SELECT kl FROM quantization WHERE scheme = 'q4-outliers'", {}, 9.0),
        ("SELECT kl FROM quantization_chosen WHERE bits = 4", {}, 4.0),
        ("SELECT kl FROM quantization_chosen WHERE scheme = 'float32'", {}, 0.0),
    ],
)
def test_a_query_finds_its_cells(query, about, found):
    asked = figure(query, **about)
    check([asked], tables())
    assert run().measured(asked, USUAL) == found


@pytest.mark.parametrize(
    ("query", "about", "reason"),
    [
        (f"SELECT probability {FRANCE}", {"model": "llama"}, "the run has no model llama"),
        (f"SELECT probability {FRANCE}", {"model": QWEN3}, "next_token was not measured for qwen3-0.6b-base"),
        ("SELECT max_abs_logit_diff FROM parity", {"model": NO_MODEL}, "parity was not measured"),
        (
            "SELECT COUNT(*) FROM next_token WHERE prompt = 'x and y'",
            {},
            "next_token has no row with prompt = 'x and y'",
        ),
        (f"SELECT probability {FRANCE} AND rank = 7", {}, "next_token has no row with rank = 7"),
        (f"SELECT probability {FRANCE} AND rank BETWEEN 5 AND 9", {}, "has no row with rank BETWEEN 5 AND 9"),
        (
            "SELECT target_probability FROM filler_sweep WHERE repeats = 16",
            {},
            "1410 tokens are more than 1024 positions",
        ),
        ("SELECT learned_positions FROM models", {"model": QWEN3}, "what the query finds in models is empty"),
        (
            f"SELECT probability {FRANCE}",
            {},
            "mine.csv, line 2, finds 3 values where one is printed; let it name one row",
        ),
        (
            f"SELECT rank, token {FRANCE}",
            {"value": "[]"},
            "mine.csv, line 2, finds 3 rows of 2 columns; let it select one",
        ),
        (
            f"SELECT CAST(token AS BIGINT) {FRANCE}",
            {},
            "the query of mine.csv, line 2, fails on these tables: conversion",
        ),
        ("", {}, "no stage measures share"),
        (
            "",
            {"needs_weights": False},
            "no stage measures share, which needs no model; the tests of this workflow compute it",
        ),
    ],
)
def test_what_was_not_run_says_why(query, about, reason):
    asked = figure(query, **about)
    check([asked], tables())
    with pytest.raises(NotRun, match=re.escape(reason)):
        run().measured(asked, USUAL)
    row = judge.measure(run(), [asked]).row(0, named=True)
    assert (row["status"], row["measured"]) == ("not_run", "") and reason in row["note"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT share FROM next_token", ['unable to find column "share"', "probability", "config/README.md lists"]),
        ("SELECT rank FROM nowhere", ["relation 'nowhere' was not found", "config/README.md lists every table"]),
        ("SELECT rank FROM next_token WHERE (rank = 1", ["sql parser error"]),
        ("SELECT rank FROM next_token; SELECT 1", ["one (and only one) statement"]),
        ("SELECT FANCY(rank) FROM next_token", ["unsupported function 'fancy'"]),
        ("SELECT rank FROM next_token WHERE rank = 'first'", ["cannot compare string with numeric type"]),
        ("SELECT status FROM reproduction", ["relation 'reproduction' was not found"]),
    ],
)
def test_a_query_that_no_run_can_answer_is_named_with_its_place(query, words):
    with pytest.raises(ConfigError) as error:
        check([figure(query)], tables())
    said = str(error.value)
    assert said.startswith("mine.csv, line 2 has a query that cannot run: ") and "\n" not in said
    assert all(word in said for word in words), said


READERS = ["read_csv", "read_ipc", "read_json", "read_ndjson", "read_parquet"]
FORMS = [
    "SELECT a FROM {}('x')",
    "SELECT a FROM t, \"{}\" ('x')",
    "SELECT E'\\'', a FROM t JOIN {} /* ' */ -- '\n('x')",
]


@pytest.mark.parametrize("name", [*READERS, "scan_csv"])
@pytest.mark.parametrize("form", FORMS)
def test_no_query_opens_a_file(name, form):
    for spelt in (name, name.upper()):
        assert refused(form.format(spelt)) == f"opens a file with {spelt}; select from the tables of the run instead"
    assert refused(f"SELECT MAX({name}) FROM t WHERE a = '{name}'") == ""


def test_polars_knows_no_other_function_that_opens_a_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("a\n1\n")
    for name in ("csv", "parquet", "open", "glob", "file", "csv_scan", "parquet_scan", "delta", "iceberg", "load"):
        with pytest.raises(pl.exceptions.PolarsError, match=f"'{name}' is not a supported table function"):
            pl.SQLContext().execute(f"SELECT * FROM {name}('{path}')", eager=True)
    with pytest.raises(pl.exceptions.PolarsError, match="was not found"):
        pl.SQLContext().execute(f"SELECT * FROM '{path}'", eager=True)


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE t",
        "CREATE TABLE x AS SELECT 1",
        "SHOW TABLES",
        "next_token.probability",
        "WITH x AS (SELECT 1) SELECT a FROM x",
    ],
)
def test_only_a_select_is_a_query(query):
    assert refused(query).startswith("is no SELECT; write one, as in SELECT probability FROM")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT a FROM t", Rows("t", ())),
        ("SELECT a FROM T WHERE b = 1 and c = 'x AND (y' ORDER BY a LIMIT 1", Rows("t", ("b = 1", "c = 'x AND (y'"))),
        ("SELECT a FROM t WHERE b BETWEEN 1 AND 2 AND c IN (1, 2)", Rows("t", ("b BETWEEN 1 AND 2", "c IN (1, 2)"))),
        ("SELECT a FROM t WHERE b = 1 OR c = 2 AND d = 3", Rows("t", ("b = 1 OR c = 2 AND d = 3",))),
        ("SELECT MAX(a) FILTER (WHERE b = 1) FROM t WHERE c = 2 GROUP BY d", Rows("t", ("c = 2",))),
        ('SELECT a FROM t WHERE "offset" = 17', Rows("t", ('"offset" = 17',))),
        ("SELECT a FROM t WHERE offset = 17 AND b = 1 LIMIT 2 OFFSET 1", Rows("t", ("offset = 17", "b = 1"))),
        ("SELECT a = (SELECT MAX(a) FROM u WHERE b = 1) FROM t WHERE c = 2", Rows("t", ("c = 2",))),
        ("SELECT a FROM (SELECT a, b FROM t WHERE c = 2) WHERE b = 1", Rows("t", ("c = 2",))),
        ("SELECT a FROM t JOIN u USING (b) WHERE c = 2", None),
        ("SELECT a FROM t WHERE c = 2 UNION ALL SELECT a FROM u", None),
        ("SELECT a FROM t x WHERE x.c = 2", None),
        ("SELECT 1", None),
    ],
)
def test_the_rows_that_a_query_is_about(query, rows):
    assert rows_of(query) == rows


def test_the_choice_that_reproduces_most_is_taken_and_named():
    ledger = [
        figure(f"SELECT {column} FROM {table}", value=value, tolerance_kind="abs", tolerance=5e-5)
        for table, column, value in (
            ("quantization_chosen WHERE bits = 4", "kl", "4.8316"),
            ("quantization_error_chosen", "first_scale", "0.04576"),
            ("quantization_chosen WHERE bits = 8", "kl", "0.0166"),
            (f"quantization WHERE scheme = '{HALF}'", "kl", "4.8316"),
        )
    ]
    found = judge.measure(run(), ledger)
    assert found["status"].to_list() == ["reproduced", "reproduced", "not_run", "reproduced"]
    told = "with divisor half_range and grouping input, 2 figures of quantization reproduce"
    assert found["note"][0] == f"{told} (1 with divisor largest_code and grouping input)"
    assert found["note"][3] == "", "a scheme by its name is no choice"


def test_a_run_without_schemes_settles_nothing():
    bare = type(run())(tables(), {}, {})
    asked = figure("SELECT kl FROM quantization_chosen WHERE scheme = 'float32'", model=NO_MODEL)
    assert judge.measure(bare, [asked]).select("status", "note").row(0) == ("reproduced", "")
