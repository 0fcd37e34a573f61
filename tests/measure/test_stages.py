"""Each stage's table: it fits its schema, and its numbers say what they claim."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest
import tiny_tokenizer
import torch
from house import measure_module
from polars.testing import assert_frame_equal
from tokentrail import tables
from tokentrail.errors import ParityError
from tokentrail.forward import spec as specs
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.frame import forward, last
from tokentrail.stages.cells import measure as cells
from tokentrail.stages.census import measure as census
from tokentrail.stages.lens import measure as lens
from tokentrail.stages.name_swaps import name_swaps, name_swaps_summary
from tokentrail.stages.next_token import measure as next_token
from tokentrail.stages.parity import parity, parity_gate
from tokentrail.stages.residual import measure as residual
from tokentrail.weights.tokenizer import Tokenizer

STAGES = ["tokens", "next_token", "distribution", "lens", "residual", "parity", "parity_layers", "block", "mlp"]
SWAPS = {
    "people": {"templates": {"gave": "When {name} came, Bob gave the book to"}, "names": ["Carol", "Tom", "Mirabel"]},
    "capital": {"templates": {"met": "{name} met Tom and", "of": "The book of {name} is"}, "names": ["Alice", "Zoé"]},
}


def measured(stage, loaded, settings):
    """The stage's table; cutting prompts takes a tokenizer and no model in memory."""
    measure = measure_module(stage).measure
    given = (loaded.checkpoint, loaded.tokenizer) if stage == "tokens" else (loaded,)
    return measure(*given, settings)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_fits_its_schema_and_repeats_itself(loaded, settings, stage, tmp_path):
    for name in ("one", "two"):
        tables.write(stage, measured(stage, loaded, settings), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert set(tables.read(stage, tmp_path / "one")["prompt"]) == set(settings["prompts"])


def test_tokens_say_what_makes_a_prompt_other_than_it_looks(loaded, settings, caplog):
    prompts = settings["prompts"] | {"odd": {"text": "<s>The capital of France is ", "target": " Paris"}}
    frame = measured("tokens", loaded, settings | {"prompts": prompts})
    (note,) = frame.filter(prompt="odd")["note"].unique()
    assert "holds '<s>'" in note and "two spaces" in note
    assert set(frame.filter(pl.col("prompt") != "odd")["note"]) == {""}
    assert [record.getMessage() for record in caplog.records] == [f"prompt odd: {note}"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("change", [{"text": "<|user|>Alice gave"}, {"target": "<|user|>"}])
def test_a_token_without_a_row_is_told_in_one_sentence(loaded, settings, stage, change, tmp_path):
    if stage == "tokens" and "target" in change:
        pytest.skip("cutting a prompt needs no target")
    rows = loaded.model.spec.vocabulary
    inner = tiny_tokenizer.train()
    inner.add_special_tokens([f"<unused{i}>" for i in range(rows - inner.get_vocab_size())] + ["<|user|>"])
    larger = replace(loaded, tokenizer=Tokenizer(inner, "tokenizer", "tiny", rows=rows))
    prompts = settings["prompts"] | {"bad": settings["prompts"]["alice"] | change}
    tables.write(stage, measured(stage, larger, settings | {"prompts": prompts}), tmp_path / "table")
    (row,) = tables.refused(stage, tmp_path / "table")
    assert f"'<|user|>' (id {rows})" in row["reason"]
    assert f"the token table of tiny has {rows} rows" in row["reason"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": ""}, "is empty"),
        ({"target": ""}, "is no token of its own"),
        ({"text": "a " * 300}, "256 positions"),
    ],
)
def test_a_prompt_that_cannot_be_run_has_a_row_with_the_reason(loaded, settings, stage, change, message, tmp_path):
    if "positions" in message and loaded.model.spec.learned_positions is None:
        pytest.skip("this model has no position table")
    if stage == "tokens" and "empty" not in message:
        pytest.skip("cutting a prompt needs no target and no position")
    prompts = settings["prompts"] | {"bad": settings["prompts"]["alice"] | change}
    tables.write(stage, measured(stage, loaded, settings), tmp_path / "without")
    tables.write(stage, measured(stage, loaded, settings | {"prompts": prompts}), tmp_path / "with")
    assert tables.read(stage, tmp_path / "with").equals(tables.read(stage, tmp_path / "without")), "the others are kept"
    assert tables.refused(stage, tmp_path / "without") == []
    (row,) = tables.refused(stage, tmp_path / "with")
    assert (row["stage"], row["model"], row["asked"]) == (stage, "tiny", "prompt bad")
    assert message in row["reason"]


def test_next_token_shows_the_top_and_always_the_target(loaded, settings):
    frame = next_token.measure(loaded, settings)
    for prompt in settings["prompts"]:
        rows = frame.filter(prompt=prompt)
        assert rows["rank"].to_list()[:5] == [0, 1, 2, 3, 4]
        assert rows["is_target"].sum() == 1
        assert rows["probability"].to_list() == sorted(rows["probability"], reverse=True)
        assert rows["nll"].to_list() == pytest.approx([-math.log(p) for p in rows["probability"]])


def test_the_last_row_of_the_lens_is_the_output_exactly(loaded, settings):
    frame, said = lens.measure(loaded, settings), next_token.measure(loaded, settings)
    for prompt in settings["prompts"]:
        final = frame.filter(prompt=prompt, variant="as_trained").row(-1, named=True)
        target = said.filter(prompt=prompt, is_target=True).row(0, named=True)
        assert (final["layer"], final["site"]) == (len(loaded.model.spec.layers) - 1, "resid_post")
        assert final["target_probability"] == target["probability"]
        assert final["target_rank"] == target["rank"]
        assert final["kl_to_final"] == 0


def test_the_lens_with_attention_off_is_that_of_a_model_without_it(loaded, settings):
    spec, frame = loaded.model.spec, lens.measure(loaded, settings)
    mixers = {specs.kind_of(layer.mixer) for layer in spec.layers}
    assert set(frame["variant"]) == ({"as_trained", "attention_off"} if len(mixers) > 1 else {"as_trained"})
    silent = []
    for cell, layer in zip(spec.layers, loaded.model.layers, strict=True):
        if isinstance(cell.mixer, specs.Attention):
            own = layer["mixer"]
            nothing = Linear(torch.zeros_like(own.cell.out.weight), own.cell.out.bias)
            layer = layer | {"mixer": own._replace(cell=own.cell._replace(out=nothing))}
        silent.append(layer)
    without = replace(loaded, model=replace(loaded.model, layers=tuple(silent)))
    off = frame.filter(variant="attention_off").drop("variant")
    expected = lens.measure(without, settings).filter(variant="as_trained").drop("variant")
    if off.height:
        assert_frame_equal(off, expected, abs_tol=1e-5)


def test_the_lens_takes_the_norm_anew_at_every_layer(loaded, settings):
    """Scaling a stream must not change what the lens reads from it."""
    from tokentrail.forward.frame import unembed
    from tokentrail.forward.taps import Record

    ids = torch.tensor([loaded.tokenizer.encode("The capital of France is")])
    record = Record("resid_post", keep=lambda x: x[:, -1:])
    with torch.inference_mode():
        forward(loaded.model, ids, tap=record)
        for stream in record.seen.values():
            apart = unembed(loaded.model, stream) - unembed(loaded.model, stream * 1000)
            assert apart.abs().max() < 1e-2 * unembed(loaded.model, stream).abs().max()


def test_the_streams_add_up(loaded, settings):
    """Norms are of what is really added: mid is pre plus the scaled mixer output, so lengths obey the triangle."""
    frame = residual.measure(loaded, settings)
    wide = (
        frame.filter(prompt="alice")
        .pivot("site", index=["position", "layer"], values="l2_norm")
        .drop_nulls("mixer_out")
    )
    slack = 1e-4
    assert (wide["resid_mid"] <= wide["resid_pre"] + wide["mixer_out"] + slack).all()
    assert (wide["resid_post"] <= wide["resid_mid"] + wide["ffn_out"] + slack).all()
    assert (wide["mixer_out"] >= (wide["resid_mid"] - wide["resid_pre"]).abs() - slack).all()


def swaps_of(loaded, settings, batch):
    return name_swaps.measure(loaded, settings | {"sets": SWAPS, "batch": batch})


def test_name_swaps_do_not_depend_on_the_batch(loaded, settings):
    one, many = swaps_of(loaded, settings, 1), swaps_of(loaded, settings, 32)
    assert one.select("set", "template", "name", "rank", "top1_token").equals(
        many.select("set", "template", "name", "rank", "top1_token")
    )
    assert (one["probability"] - many["probability"]).abs().max() < 1e-5
    assert (one["name_nll"] - many["name_nll"]).abs().max() < 1e-4
    assert one.height == 3 + 2 * 2


def test_a_names_nll_is_the_sum_over_its_pieces(loaded, settings):
    frame = swaps_of(loaded, settings, 4)
    text = "When Mirabel came, Bob gave the book to"
    row = frame.filter(set="people", name="Mirabel").row(0, named=True)
    ids, total = loaded.tokenizer.encode(text), 0.0
    for piece in loaded.tokenizer.following(text, " Mirabel"):
        with torch.inference_mode():
            batch = torch.tensor([ids])
            total -= forward(loaded.model, batch, read=last(batch))[0, 0].double().log_softmax(0)[piece].item()
        ids = [*ids, piece]
    assert row["name_nll"] == pytest.approx(total, abs=1e-4)
    assert row["pieces"] == len(ids) - len(loaded.tokenizer.encode(text))


def test_the_summary_resamples_names(loaded, settings, tmp_path):
    bootstrap = {"samples": 500, "level": 0.9, "seed": 3}
    swaps = swaps_of(loaded, settings, 8)
    frame = name_swaps_summary.measure(swaps, {"model": "tiny", "bootstrap": bootstrap})
    tables.write("name_swaps_summary", frame, tmp_path / "t")
    assert frame.filter(set="capital", template="all", quantity="probability").row(0, named=True)["names"] == 2
    whole = frame.filter(set="people", template="all", quantity="probability").row(0, named=True)
    assert whole["mean"] == pytest.approx(swaps.filter(set="people")["probability"].mean())
    assert ((frame["low"] <= frame["mean"] + 1e-12) & (frame["mean"] <= frame["high"] + 1e-12)).all()
    again = name_swaps_summary.measure(swaps, {"model": "tiny", "bootstrap": bootstrap})
    assert frame.equals(again)


def test_the_interval_covers_the_mean_as_often_as_it_says():
    import numpy as np
    from tokentrail.measure.bootstrap import interval

    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(300):
        low, high = interval(generator.normal(1.0, 2.0, size=60), samples=400, level=0.9, seed=trial)
        hits += low <= 1.0 <= high
    assert 0.84 <= hits / 300 <= 0.95


def test_cells_and_census_read_the_checkpoint_alone(loaded, settings, tmp_path):
    tables.write("cells", cells.measure(loaded.checkpoint, settings), tmp_path / "cells")
    frame = census.measure(loaded.checkpoint, settings)
    tables.write("census", frame, tmp_path / "census")
    stored = sum(math.prod(loaded.checkpoint.shape(name)) for name in loaded.checkpoint.tensor_names())
    assert frame["counted_parameters"].sum() == stored
    assert frame.group_by("family").agg(pl.col("family_share").first())["family_share"].sum() == pytest.approx(1)
    head = frame.filter(family="head").row(0, named=True)
    if loaded.model.spec.tied:
        assert head["counted_parameters"] == 0
        assert head["storage"] == frame.filter(family="token_embedding")["storage"][0]
    else:
        assert head["counted_parameters"] == head["parameters"]


def test_the_census_agrees_with_the_published_totals():
    """GPT-2 has 124,439,808 parameters and Granite-4.0-H-350M 340,332,224: the shapes alone say so."""
    from random_models import FULL_SHAPES
    from tokentrail.forward.families import read_spec
    from tokentrail.forward.shapes import shapes

    total = {name: sum(map(math.prod, shapes(read_spec(c)).values())) for name, c in FULL_SHAPES.items()}
    assert total["gpt2"] == 124_439_808
    assert total["granite-4.0-h-350m"] == 340_332_224


def test_the_gate_reads_the_tables():
    rows = {"prompt": ["a", "b"], "position": [3, 4], "max_abs_logit_diff": [1e-5, 2e-3], "tolerance": [1e-3] * 2}
    layers = pl.DataFrame(
        {
            "layer": [0, 1, 1],
            "site": ["mixer_in", "mixer_out", "ffn_in"],
            "max_abs_diff": [1e-7, 0.1, 0.2],
            "max_abs_value": [1.0] * 3,
        }
    )
    with pytest.raises(ParityError, match=r"prompt b at position 4 .* 0\.002, .*layer 1, site mixer_out"):
        parity_gate.gate(pl.DataFrame(rows), layers, "m")
    passed = pl.DataFrame(rows).with_columns(max_abs_logit_diff=pl.lit(1e-3))
    assert "tolerance 0.001" in parity_gate.gate(passed, layers, "m")


def test_a_model_that_can_be_asked_no_prompt_is_told_why(loaded, settings):
    nothing = parity.measure(loaded, settings).clear()
    why = [{"reason": "prompt a has 400 tokens, but m has 256 positions"}, {"reason": "the prompt b is empty"}]
    with pytest.raises(ParityError, match=r"on no prompt: prompt a has 400 tokens.*; the prompt b is empty\. Give"):
        parity_gate.gate(nothing, nothing, "m", why)
