"""Sentences on quantization: what ran and what was arithmetic, sweeps, parts, and what could not be packed."""

import polars as pl
import pytest
import synthetic_tables as synthetic
from markupsafe import Markup
from tokentrail.stages.quantization import quantized
from tokentrail.stages.quantization import section as quantization


def plain(markup) -> str:
    return Markup(markup).striptags().replace("\u00a0", " ")


@pytest.fixture(scope="module")
def tables():
    return synthetic.tables(4)


@pytest.fixture
def rows(tables):
    return quantized.first_passage(tables["quantization"].filter(model="alpha"))


def test_bits_and_groups_are_told_from_the_sweeps(rows):
    assert plain(quantization.bits(rows)) == (
        "Everything rounded in groups of 64: with 8 bits the predictions move by 6.1 × 10−5 nats, with 2 by 0.250; "
        "after the prompt alice, ·Paris gives way to <img·src=x·onerror=alert(1)> at 3 bits."
    )
    kept = rows.filter(pl.col("bits").is_null() | (pl.col("bits") > 3))
    assert plain(quantization.bits(kept)).endswith("after the prompt alice, ·Paris stays first with all of them.")
    assert plain(quantization.groups(rows)) == (
        "At 4 bits, a scale for every 16 weights moves them by 0.00160 nats, for every 128 by 0.0128."
    )


def test_parts_and_the_two_uses_of_the_table(rows):
    assert plain(quantization.part(rows)) == (
        "One part at a time (4 bits), the largest move comes from the FFN: up (0.0160 nats, its interval overlapping "
        "with that of attention: output), the smallest from token table, both uses (0.00400); all "
        "matrices of the layers together give 0.0200."
    )
    assert plain(quantization.table(rows)) == (
        "The tied token table rounded only where tokens are looked up gives 0.00100, only where logits are made "
        "0.00300, in both uses 0.00400: more of the damage arises where logits are made."
    )
    assert quantization.table(rows.filter(pl.col("families") != "tokens.input")) == ""


def test_only_what_ran_is_said_to_be_fast(rows):
    said = plain(quantization.ran(rows))
    assert said == (
        "Run from stored codes, beside 40.0 ms a token in float32: q4-packed stores 58.0 MiB (100.0% of the formula) "
        "and decodes a token in 9.00 ms (4.44 times as fast) at 0.0111 nats and q8-packed stores 108 MiB (100.0% of "
        "the formula) and decodes a token in 13.0 ms (3.08 times as fast) at 2.1 × 10−4 nats."
    )
    simulated = rows.filter(pl.col("execution") == "simulated")
    assert quantization.ran(simulated) == quantization.agreed(simulated) == quantization.story(simulated) == ""
    assert plain(quantization.agreed(rows)) == (
        "With float32 activations the packed bytes give the simulated logits to within 1.0 × 10−5; as they run, with "
        "bfloat16 activations, to within 0.0500."
    )


def test_what_could_not_be_packed_is_named(tables):
    rows = tables["quantization"].filter(model="alpha")
    errors = pl.DataFrame(schema=dict.fromkeys(("scheme", "tensor", "status", "reason", "families"), pl.String))
    assert plain(quantization.impossible(rows, errors)) == (
        "Asked and not measured: q3-packed, which was only simulated (tokens: there is no packed kernel for 3 bits)."
    )
    assert quantization.impossible(rows.filter(status="ok"), errors) == ""


def test_outliers(tables):
    errors = tables["quantization_error"].filter(model="alpha")
    assert plain(quantization.outliers(errors)) == (
        "Of the groups of 64, 7.0% hold a weight beyond four standard deviations of its matrix; the farthest is 30.0 "
        "standard deviations out, in layers.2.ffn.up.weight."
    )
    assert quantization.outliers(errors.clear()) == ""


def test_the_story_without_and_with_a_passage(tables):
    told = {
        model: plain(quantization.story(tables["quantization"].filter(model=model))) for model in ("alpha", "delta")
    }
    start = (
        "Of the schemes that run from stored codes, the smallest, q4-packed (4 bits, symmetric), takes 14.5% of "
        "float32’s bytes and decodes a token in 9.00 ms, not 40.0"
    )
    assert told["alpha"] == f"{start}; at 90.0% of the 300 positions of tide-mill the first token stays the same."
    assert told["delta"] == f"{start}."


def test_what_the_numbers_were_read_on_is_told_for_every_model(tables):
    told = {entry["index"]: entry for entry in quantization.view(tables, synthetic.settings(4))}
    with_one, without = told[0], told[3]
    assert with_one["passages"] and not without["passages"]
    assert without["prompt"] == "alice"


def test_a_model_without_schemes_has_no_entry(tables):
    settings = synthetic.settings(2)
    some = tables | {
        name: tables[name].filter(pl.col("model") == "beta") for name in ("quantization", "quantization_error")
    }
    assert [entry["index"] for entry in quantization.view(some, settings)] == [1]


def test_what_a_scheme_saves_stands_once_whatever_it_is_read_on(tables):
    again = tables["quantization"].filter(pl.col("passage") != "").with_columns(passage=pl.lit("another"))
    twice = tables | {"quantization": pl.concat([tables["quantization"], again])}
    told, before = (quantization.view(each, synthetic.settings(4))[0] for each in (twice, tables))
    assert told["schemes"] == before["schemes"] and len(told["rows"]) > len(told["schemes"])
