"""What the page says of published figures: the count first, then what differs, and why others were not run."""

import polars as pl
import pytest
import synthetic_tables as synthetic
from test_report_sections import plain
from tokentrail.report.build import sections
from tokentrail.stages.reproduction import section as reproduction


def figures(*statuses, **same):
    row = synthetic.figures("alpha")[0]
    rows = [row | {"id": str(at), "status": status} | same for at, status in enumerate(statuses)]
    return synthetic.frame("reproduction", rows)


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        (["reproduced"] * 2, "2 of 2 published figures that were judged reproduce."),
        (["reproduced", "differs"], "1 of 2 published figures that were judged reproduce; 1 differs."),
        (
            ["reproduced", "differs", "differs", "shown", "not_run"],
            "1 of 3 published figures that were judged reproduce; 2 differ. 1 figure of the author’s own machine, "
            "or of an input that is not printed, is shown and not judged and 1 figure was not run.",
        ),
        (["not_run"] * 2, "Of 2 published figures, none could be judged. 2 figures were not run."),
    ],
)
def test_the_count_comes_first(statuses, said):
    assert plain(reproduction.leading(figures(*statuses))) == said


def test_each_subject_each_difference_and_each_reason_is_listed():
    view = reproduction.view(synthetic.tables(2), synthetic.settings(2))
    assert [row["stage"] for row in view["stages"]] == ["next_token", "lens"]
    assert view["stages"][0] == {"stage": "next_token", "reproduced": 2, "differs": 2, "shown": 0, "not_run": 0}
    assert [row["quantity"] for row in view["differing"]] == ["p2", "t2", "p2", "t2"]
    assert view["differing"][0]["measured"] == "0.012" and view["differing"][0]["tolerance"] == "0.0005"
    assert view["reasons"] == [{"why": "the run has no model llama", "figures": 2, "stages": "lens"}]


def test_quantities_that_no_stage_measures_are_one_reason():
    rows = pl.concat(figures("not_run", note=f"no stage measures {name}; more") for name in ("x", "y"))
    assert [(row["why"], row["figures"]) for row in reproduction.reasons(rows)] == [("no stage measures them", 2)]


def test_the_choice_that_was_settled_is_told():
    note = "with divisor half_range and grouping input, 40 figures of quantization reproduce (2 with others); nats"
    assert reproduction.choice(figures("reproduced", note=note)) == note.partition("; ")[0]
    assert reproduction.choice(figures("reproduced")) == ""


def test_without_a_ledger_there_is_no_section():
    settings = synthetic.settings(1)
    assert sections(settings)[0]["name"] == "reproduction"
    assert "reproduction" not in {each["name"] for each in sections(settings | {"ledgers": []})}
