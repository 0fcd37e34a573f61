"""A column of any stage's table that nothing works out a second time is noticed here."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from column_checks import CHECKED_ELSEWHERE, CLAIMED, EXEMPT
from tokentrail.rooms import schemas


@pytest.fixture(scope="module", autouse=True)
def all_checks():
    for file in Path(__file__).parent.glob("test_*_columns.py"):
        importlib.import_module(file.stem)


@pytest.mark.parametrize("table", [table for table in schemas() if table not in CHECKED_ELSEWHERE])
def test_every_column_is_worked_out_by_a_check(table):
    columns = set(schemas()[table].column_names())
    exempt = {column for of, column in EXEMPT if of == table}
    unchecked = columns - CLAIMED.get(table, set()) - exempt
    assert not unchecked, f"no check of {table} works out {sorted(unchecked)}; add it to the check of that table"
    assert not CLAIMED.get(table, set()) - columns, "a check claims a column that is gone"


def test_an_exemption_has_a_reason_and_is_needed():
    assert all(len(reason) > 20 for reason in (*EXEMPT.values(), *CHECKED_ELSEWHERE.values()))
    assert CHECKED_ELSEWHERE.keys() <= schemas().keys()
    for table, column in EXEMPT:
        assert column in schemas()[table].column_names() and column not in CLAIMED[table]
