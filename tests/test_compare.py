"""Two runs, table by table."""

import sys

import polars as pl
import pytest
from tokentrail import compare

ROWS = pl.DataFrame({"prompt": ["a", "b"], "value": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("table", "other", "said", "status"),
    [
        ("lens", ROWS, "", 0),
        ("lens", ROWS.with_columns(value=pl.Series([1.0, 2.5])), "value in 1 of 2 rows, by 0.5 at most", 1),
        ("lens", ROWS.with_columns(value=pl.Series([1.0, None])), "value in 1 of 2 rows", 1),
        ("lens", ROWS.with_columns(prompt=pl.Series(["a", "c"])), "prompt in 1 of 2 rows", 1),
        ("lens", ROWS.head(1), "2 and 1 rows", 1),
        ("lens", ROWS.rename({"value": "x"}), "other columns: ('value', Float64), ('x', Float64)", 1),
        ("timing", ROWS.with_columns(value=pl.Series([1.0, 2.5])), "value in 1 of 2 rows", 0),
        ("lens", None, "only in", 1),
    ],
)
def test_runs_are_told_apart(tmp_path, capsys, monkeypatch, table, other, said, status):
    for run, rows in (("one", ROWS), ("other", other)):
        (tmp_path / run / "m").mkdir(parents=True)
        if rows is not None:
            rows.write_parquet(tmp_path / run / "m" / f"{table}.parquet")
    monkeypatch.setattr(sys, "argv", ["compare", str(tmp_path / "one"), str(tmp_path / "other")])
    assert compare.main() == status
    printed = capsys.readouterr().out
    assert (said in printed and printed) if said else not printed
