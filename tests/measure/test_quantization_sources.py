"""What the weights were before: stored formats and circular schemes; and passages that a model cannot read."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import tiny_weights as tiny
from tokentrail import config, tables
from tokentrail.stages.quantization import passages, quantization_quality, quantized, section
from tokentrail.weights.fetch import fetch
from tokentrail.weights.load import load

SCHEMES = {
    "q4": {"bits": 4, "group_size": 32, "scales": "bfloat16"},
    "q4-cut": {"bits": 4, "group_size": 32, "divisor": "half_range"},
    "q4-middle": {"bits": 4, "group_size": 32, "symmetric": False, "scales": "bfloat16"},
    "q8": {"bits": 8, "group_size": 32},
}


def measured(tmp_path, monkeypatch, stored: str, text: str = "the 12 the") -> pl.DataFrame:
    """Table `quantization_quality` of a tiny Llama whose GGUF stores its matrices so."""
    monkeypatch.setenv("TOKENTRAIL_CACHE", str(tmp_path / "cache"))
    path = tiny.gguf(tmp_path / "model" / "a.gguf", quantized=stored)
    source = {"kind": "folder", "path": str(path.parent)}
    (tmp_path / "passage.txt").write_text(text)
    parsed = config.parse(
        {
            "run": "r",
            "title": "t",
            "models": {"tiny": {"label": "Tiny", "source": source}},
            "prompts": {"p": {"text": "the 12", "target": "1"}},
            "stages": {
                "quantization": {
                    "schemes": SCHEMES,
                    "passages": {"short": str(tmp_path / "passage.txt")},
                    "bootstrap": {"samples": 100},
                }
            },
        }
    )
    weights = fetch("tiny", tiny.folder_source(path.parent), "", tmp_path / "lock.json")
    settings = config.settings(parsed, "quantization_quality", "tiny")
    loaded = load(weights.with_columns(model=pl.lit("tiny")), settings, block=False)
    frame = quantization_quality.measure(loaded, settings)
    tables.write("quantization_quality", frame, tmp_path / "table.parquet")
    return tables.read("quantization_quality", tmp_path / "table.parquet")


@pytest.mark.parametrize(
    ("stored", "circular"), [("Q4_0", ["q4-cut"]), ("Q4_1", ["q4-middle"]), ("Q8_0", ["q8"]), ("F16", []), ("F32", [])]
)
def test_a_scheme_that_makes_the_stored_format_again_is_circular_and_said_to_be(
    tmp_path, monkeypatch, stored, circular
):
    frame = measured(tmp_path, monkeypatch, stored)
    assert set(frame["stored_dtypes"]) == {stored}
    simulated = frame.filter(execution="simulated")
    found = [row["scheme"] for row in simulated.to_dicts() if quantized.is_circular(row)]
    assert found == circular
    errors = dict(simulated.select("scheme", "weight_error").iter_rows())
    for scheme in circular:
        assert errors[scheme] < 0.02 < min(errors["q4"], 0.08)
    rows = quantized.first_passage(frame)
    said = section.circular(rows)
    assert bool(said) == bool(circular) and all(scheme in said for scheme in circular)
    assert (stored in section.reference(rows)) == (stored not in ("F16", "F32"))


def test_the_share_of_a_model_in_two_formats_is_that_of_its_weights(tmp_path, monkeypatch):
    frame = measured(tmp_path, monkeypatch, "Q4_1")
    assert frame.filter(scheme="q4-middle")["on_codes"].to_list() == [1.0]
    assert frame.filter(scheme="float32")["on_codes"].to_list() == [None, None]


def test_exactly_uniform_is_read_and_anything_worse_is_refused_by_name():
    at = math.log(1600)
    assert passages.unreadable("m", "mill", at, 1600) == ""
    assert passages.unreadable("m", "mill", 0.0, 1600) == ""
    sentence = passages.unreadable("m", "mill", math.nextafter(at, math.inf), 1600)
    assert sentence.startswith(
        "m loses 7.38 nats a token on mill, more than the 7.38 of a uniform guess over its 1,600 "
    )
    assert "10.51" in passages.unreadable("m", "mill", math.log(36_583), 1600)
    assert passages.unreadable("m", "mill", math.nan, 1600) and passages.unreadable("m", "mill", 1e4, 1600)


def test_a_passage_that_cannot_be_read_is_a_row_with_a_reason_and_the_prompt_is_measured(tmp_path, monkeypatch):
    """Random weights are worse than a uniform guess on any text."""
    frame = measured(tmp_path, monkeypatch, "F32")
    (skipped,) = frame.filter(status="skipped").to_dicts()
    assert (skipped["scheme"], skipped["passage"], skipped["positions"]) == ("float32", "short", None)
    assert skipped["reason"].startswith("tiny loses ") and "a token on short, more than the" in skipped["reason"]
    nothing = [skipped[name] for name in (*quantization_quality.ON_PROMPT, *quantization_quality.ON_PASSAGE)]
    assert nothing == [None] * len(nothing)
    kept = frame.filter(status="ok")
    assert kept["scheme"].to_list() == ["float32", "bfloat16", *SCHEMES]
    assert set(kept["passage"]) == {""} and kept["kl"].null_count() == 0 and kept["mean_kl"].null_count() == kept.height
    assert "on short" in section.unread(frame) and section.unread(kept) == ""
    assert np.isfinite(quantized.first_passage(frame)["moved"].to_numpy()).all()
