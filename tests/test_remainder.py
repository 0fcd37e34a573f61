"""What is said of the models that a run lost."""

from types import SimpleNamespace

import pytest
from tokentrail import remainder


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("torch 2.10.0, 2 threads\nlens of m: NaN in x\n\n", "Its log ends with: NaN in x"),
        (
            "Traceback (most recent call last):\n  File\nRuntimeError: no memory\n",
            "It broke off with RuntimeError: no memory; its log, {log}, says where.",
        ),
        ("torch 2.10.0, 2 threads\n", "It ended without a word, as a process does that the system kills"),
        ("lens of n: another model's\n", "It ended without a word"),
        (None, "It ended without a word"),
    ],
)
def test_the_sentence_is_that_of_the_log(tmp_path, log, sentence):
    path = tmp_path / "lens.log"
    if log is not None:
        path.write_text(log)
    assert remainder.why(path, "lens of m").startswith(sentence.format(log=path))


def failed(rule: str, log: str, **wildcards) -> SimpleNamespace:
    job = SimpleNamespace(rule=SimpleNamespace(name=rule), log=[log], wildcards=SimpleNamespace(**wildcards))
    return SimpleNamespace(**vars(job), is_group=lambda: False)


def test_every_failed_job_of_a_model_is_told(tmp_path):
    log = tmp_path / "weights.log"
    log.write_text("weights of b: truncated\n")
    group = SimpleNamespace(is_group=lambda: True, jobs=[failed("lens", str(tmp_path / "none"), model="a")])
    lost = remainder.lost_models([failed("weights", str(log), model="b"), group])
    assert [(each["model"], each["stage"]) for each in lost] == [("a", "lens"), ("b", "weights")]
    assert lost[1]["sentence"] == "Its log ends with: truncated"


def test_leaving_out_a_model_does_not_help_a_chart():
    chart = failed("chart", "chart.log", chart="lens")
    assert remainder.lost_models([failed("weights", "weights.log", model="b"), chart]) == []
