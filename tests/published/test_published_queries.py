"""Every query of the published ledger, on the tables of a run that found what was published."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import replace

import paper_tables
import polars as pl
import pytest
from ledger import PATH
from tokentrail import rooms
from tokentrail.stages.reproduction import choice, judge
from tokentrail.stages.reproduction.ledger import Figure, read
from tokentrail.stages.reproduction.query import rows_of, words
from tokentrail.stages.reproduction.run import check
from tokentrail.stages.reproduction.views import CHOSEN, OF_MODELS

ROOT = PATH.parents[2]
LEDGER = read(PATH)
ASKED = [figure for figure in LEDGER if figure.measured]
EMPTY = {name: schema.create_empty() for name, schema in rooms.schemas().items() if name != "reproduction"}
APART = {"gpt2-cap-france-final-prob": "printed as 3.225 percent, and elsewhere as 0.032243"}
"""Figures that another figure contradicts."""
NAMED = {
    "granite-mixing-table-attention-layer",
    "granite-mixing-table-mamba-layer",
    "rope-gap-17-5",
    "rope-gap-112-100",
    "korean-filler-total-length-same",
}
"""Figures that select what their own conditions name, or compare counts: their rows are there, or they were not run."""


def held(**changed: pl.DataFrame) -> pl.DataFrame:
    return judge.measure(paper_tables.run(**changed), ASKED)


@functools.cache
def found() -> dict[str, dict]:
    return {row["id"]: row for row in held().to_dicts()}


def test_every_query_asks_for_tables_and_columns_that_stages_write():
    assert len(ASKED) > 750
    check(LEDGER, EMPTY)


@pytest.mark.parametrize("page", ["README.md", "config/README.md", "config/published/README.md"])
def test_every_query_that_a_page_shows_finds_something(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = re.findall(r"^(?:first,.*,)?(SELECT .*?)(?:,0\.98,.*)?$", text, re.MULTILINE)
    assert len(shown) == (1 if page == "README.md" else 3)
    for query in shown:
        asked = replace(ASKED[0], model=paper_tables.GPT2, measured=query, value="[]")
        check([asked], EMPTY)
        assert paper_tables.run().measured(asked, paper_tables.TAKEN)


def test_the_page_on_ledgers_names_every_table_and_column_that_no_stage_writes():
    text = (ROOT / "config/README.md").read_text(encoding="utf-8").partition("## Ledgers")[2].partition("\n## ")[0]
    columns = {column for table in OF_MODELS.values() for column in table} - {"model"}
    assert {name for name in {*OF_MODELS, *CHOSEN, *columns} if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("stage", sorted({figure.stage for figure in ASKED}))
def test_a_run_that_found_what_was_published_reproduces_it(stage):
    rows = [(found()[figure.id], expected(figure)) for figure in ASKED if figure.stage == stage]
    assert [row for row, status in rows if row["status"] != status] == []


def expected(figure: Figure) -> str:
    return "shown" if figure.tolerance_kind == "report" else "differs" if figure.id in APART else "reproduced"


def test_the_choice_that_the_write_up_left_open_is_found():
    (told,) = {
        found()[figure.id]["note"].split("; ")[0] for figure in ASKED if choice.is_open(figure) and judged(figure)
    }
    assert told.startswith("with divisor half_range and grouping input, ") and "largest_code" in told


def judged(figure: Figure) -> bool:
    return found()[figure.id]["status"] in ("reproduced", "differs")


def test_what_no_query_asks_for_was_not_run():
    rest = [figure for figure in LEDGER if not figure.measured]
    assert {figure.needs_weights for figure in rest} == {True, False}
    for row in judge.measure(paper_tables.run(), rest).to_dicts():
        assert row["status"] == "not_run" and row["note"].startswith(f"no stage measures {row['quantity']}")


def test_a_run_without_tables_says_so_of_every_figure_that_needs_one():
    empty = {name: table.clear() for name, table in paper_tables.tables().items()}
    left = held(**empty).filter(pl.col("status") != "not_run")["id"]
    reads = {figure.id: words(figure.measured) & set(empty) for figure in ASKED}
    assert {figure: tables for figure, tables in reads.items() if tables and figure in set(left)} == {}


def altered(table: pl.DataFrame, kept: set[str]) -> Iterator[pl.DataFrame]:
    """The table with other values where no condition looks: above its own, below them, and nothing; then fewer rows."""
    for factor in (3, -3, 0):
        changed = [other(name, kind, factor) for name, kind in table.schema.items() if name not in kept]
        yield table.with_columns(each for each in changed if each is not None)
    yield table.filter(pl.int_range(pl.len()) % 3 > 0)


def other(column: str, kind: pl.DataType, factor: int) -> pl.Expr | None:
    if kind.is_numeric():
        return (pl.col(column) + 1000) * factor
    if kind == pl.String:
        numbered = pl.col(column).str.replace_all(r"\d+", "9$0")
        return (pl.lit("ok") if factor == 0 else pl.lit("9") + numbered).alias(column)
    return ~pl.col(column) if kind == pl.Boolean else None


def test_another_value_in_the_table_is_another_figure():
    by_rows: dict[tuple[str, frozenset[str]], list[Figure]] = {}
    for figure in ASKED:
        rows = rows_of(figure.measured)
        if rows and rows.table not in OF_MODELS and found()[figure.id]["status"] == "reproduced":
            named = [condition for condition in rows.conditions if "<>" not in condition]
            conditions = words(" ".join(named)) | {"model", "scheme"}
            by_rows.setdefault((CHOSEN.get(rows.table, rows.table), frozenset(conditions)), []).append(figure)
    assert sum(map(len, by_rows.values())) > 600
    same = set()
    for (name, kept), figures in by_rows.items():
        for table in altered(paper_tables.tables()[name], kept):
            rows = judge.measure(paper_tables.run(**{name: table}), figures)
            left = set(rows.filter(pl.col("status") == "reproduced")["id"])
            figures = [figure for figure in figures if figure.id in left]
        same |= {figure.id for figure in figures}
    assert same == NAMED
