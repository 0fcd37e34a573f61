"""Ledgers: what they may hold, what is refused, and when a measured value is the published one."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_run import figure
from tokentrail.errors import ConfigError
from tokentrail.stages.reproduction.ledger import KINDS, read, read_all
from tokentrail.stages.reproduction.verdict import in_unit, judge, shown

PUBLISHED = Path(__file__).parents[2] / "config/published/published.csv"
HEADER = "id,stage,model,input,quantity,measured,value,tolerance_kind,tolerance"
QUERY = "SELECT token FROM next_token WHERE rank = 0"
GOOD = f"a,next_token,gpt2,alice,top1_token,{QUERY}, Alice,exact,"


def ledger(tmp_path, *lines, header=HEADER, name="mine.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def test_the_published_ledger_is_one():
    figures = read(PUBLISHED)
    assert len(figures) > 900 and {each.tolerance_kind for each in figures} <= set(KINDS)
    assert {each.model for each in figures} == {"gpt2", "qwen3-0.6b-base", "granite-4.0-h-350m-base", "none"}


def test_a_ledger_of_ones_own_needs_nine_columns(tmp_path):
    (found,) = read(ledger(tmp_path, GOOD))
    assert (found.published, found.unit, found.note, found.needs_weights) == (" Alice", "", "", True)
    assert found.measured == QUERY and found.place.endswith("mine.csv, line 2")


@pytest.mark.parametrize(
    ("lines", "header", "words"),
    [
        ([GOOD], HEADER.replace("quantity", "what"), ["mine.csv has no column 'quantity'"]),
        (
            [GOOD.replace(QUERY + ",", "")],
            HEADER.replace("measured,", ""),
            ["has no column 'measured'", "`measured` is the SQL query that finds", "as in SELECT probability FROM"],
        ),
        ([GOOD.replace(QUERY, "next_token.token")], HEADER, ["line 2 has a query that is no SELECT; write one, as in"]),
        (
            [GOOD.replace("next_token WHERE rank = 0", "read_csv('x')")],
            HEADER,
            ["line 2 has a query that opens a file"],
        ),
        ([GOOD + ",x"], HEADER + ",colour", ["has the column 'colour', which means nothing; remove it"]),
        ([GOOD + ",extra"], HEADER, ["line 2 has not as many cells as the header"]),
        (["a,next_token,gpt2,alice"], HEADER, ["line 2 has not as many cells as the header"]),
        ([GOOD.replace("top1_token,", ",", 1)], HEADER, ["line 2 leaves 'quantity' empty"]),
        ([GOOD.replace("exact", "about")], HEADER, ["line 2 has the tolerance_kind 'about'", "exact, abs, rel"]),
        ([GOOD.replace("exact,", "abs,-1")], HEADER, ["line 2 has the tolerance '-1'; it must be a number, 0 or more"]),
        ([GOOD.replace("exact,", "abs,")], HEADER, ["line 2 is judged by 'abs' but has no tolerance"]),
        ([GOOD.replace("exact,", "abs,1")], HEADER, ["its value ' Alice' is no number; use 'exact'"]),
        ([GOOD.replace(" Alice", "[1")], HEADER, ["has the value '[1', which begins like a list but is none"]),
        ([GOOD, GOOD], HEADER, ["the figure 'a' stands in", "twice; give each figure an id of its own"]),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path, lines, header, words):
    with pytest.raises(ConfigError) as error:
        read_all([ledger(tmp_path, *lines, header=header)])
    assert all(word in str(error.value) for word in words), str(error.value)


def test_an_id_in_two_ledgers_and_a_ledger_that_is_not_there_are_named(tmp_path):
    paths = [ledger(tmp_path, GOOD, name=name) for name in ("one.csv", "two.csv")]
    with pytest.raises(ConfigError, match=r"stands in .*one\.csv and .*two\.csv"):
        read_all(paths)
    with pytest.raises(ConfigError, match=r"ledgers names .*three\.csv, which is not there"):
        read_all([tmp_path / "three.csv"])
    (tmp_path / "four.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"four\.csv is no CSV file in UTF-8"):
        read_all([tmp_path / "four.csv"])


@pytest.mark.parametrize(
    ("about", "measured", "agrees"),
    [
        ({"value": "0.776", "tolerance_kind": "abs", "tolerance": 5e-4}, 0.7764, True),
        ({"value": "0.776", "tolerance_kind": "abs", "tolerance": 5e-4}, 0.7766, False),
        ({"value": "50", "tolerance_kind": "rel", "tolerance": 0.1}, 54.9, True),
        ({"value": "50", "tolerance_kind": "rel", "tolerance": 0.1}, 55.1, False),
        ({"value": "0.96", "tolerance_kind": "at_least", "tolerance": 0.005}, 0.99, True),
        ({"value": "0.96", "tolerance_kind": "at_least", "tolerance": 0.005}, 0.95, False),
        ({"value": "125", "tolerance_kind": "at_most"}, 21.5, True),
        ({"value": "125", "tolerance_kind": "at_most"}, "fast", False),
        ({"value": " Alice"}, " Alice", True),
        ({"value": " Alice"}, "Alice", False),
        # A text may look like a number: a token, or a version.
        ({"value": " 3"}, " 3", True),
        ({"value": " 3"}, "3", False),
        ({"value": "3.10"}, "3.1", False),
        ({"value": "[5, 768]"}, (5, 768), True),
        ({"value": "[5, 768]"}, [5], False),
        ({"value": "2/3"}, 2 / 3, True),
        ({"value": "12", "unit": "count"}, 13, False),
        # Deep in the tail, near-ties move a rank on another processor; a tokenizer's count does not move.
        ({"value": "16523", "unit": "rank"}, 16600, True),
        ({"value": "16523", "unit": "rank"}, 16800, False),
        ({"value": "199", "unit": "rank"}, 200, False),
        ({"value": "3000", "unit": "rank", "tolerance_kind": "at_least"}, 2980, True),
        ({"value": "3000", "unit": "rank", "tolerance_kind": "at_least"}, 2960, False),
        ({"value": "1410", "unit": "count", "needs_weights": False}, 1411, False),
        # Six digits are more than float32 on another processor keeps.
        ({"value": "0.084591", "tolerance_kind": "abs", "tolerance": 5e-7}, 0.084610, True),
        ({"value": "0.084591", "tolerance_kind": "abs", "tolerance": 5e-7}, 0.084615, False),
        ({"value": "2.623537", "tolerance_kind": "abs", "tolerance": 5e-7, "needs_weights": False}, 2.62356, False),
    ],
)
def test_what_agrees(about, measured, agrees):
    assert judge(figure(**about), measured).agrees is agrees


def test_units_and_how_values_are_written():
    assert in_unit(figure(unit="percent"), 0.085) == 8.5
    assert in_unit(figure(unit="MiB"), 2**20) == 1
    assert in_unit(figure(), True) == "yes"
    assert [shown(each) for each in (5.0, 0.1234567891, [1, " to"], " to")] == ["5", "0.1234568", '[1, " to"]', " to"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "report"])
def test_every_kind_can_fail(kind):
    wrong = {"at_least": 0.5, "at_most": 1.5}.get(kind, 3.0)
    assert not judge(figure(value="1", tolerance_kind=kind, tolerance=0.1), wrong).agrees
