"""The models that are shipped: small, loadable as they are, as good as their cards say, called what they are."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import torch
import transformers
from tokentrail import config, tables
from tokentrail.forward.frame import forward, last
from tokentrail.training import card, checkpoint, evaluate, settings
from tokentrail.training.checkpoint import opened

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = settings.read(settings.FILE)
MODELS = list(REFERENCE.models)
PUBLISHED = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to"


@cache
def folder_of(model: str) -> Path:
    return ROOT / "resources" / "reference" / model


@pytest.fixture(scope="module", params=MODELS)
def model(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def evaluation(model) -> pl.DataFrame:
    return tables.read("evaluation", folder_of(model) / "evaluation.parquet")


def test_they_are_small():
    sizes = {model: sum(f.stat().st_size for f in folder_of(model).iterdir()) for model in MODELS}
    assert max(sizes.values()) <= 8e6
    assert sum(sizes.values()) <= 20e6


def test_transformers_loads_them_unchanged_and_agrees(model):
    folder = folder_of(model)
    reference, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert not any(report.values())
    ours = opened(folder, model)
    ids = tokenizer(PUBLISHED, return_tensors="pt")["input_ids"]
    assert ids[0].tolist() == ours.tokenizer.encode(PUBLISHED)
    with torch.inference_mode():
        assert (forward(ours.model, ids) - reference(ids, use_cache=False).logits).abs().max() < 1e-3


def test_the_card_says_what_the_tables_say(model, parts, evaluation):
    folder = folder_of(model)
    rendered = card.render(
        opened(folder, model).checkpoint,
        parts,
        settings.of_stage(REFERENCE, "card", model),
        tables.read("training", folder / "training.parquet"),
        evaluation,
    )
    assert (folder / "README.md").read_text() == rendered
    assert "must not be taken for" in rendered and "trained here" in rendered


def test_the_tables_are_of_these_weights(model, parts, evaluation):
    """The short cases measured again; the long ones are left to `snakemake train_reference`."""
    loaded = opened(folder_of(model), model)
    for table in ("training", "evaluation"):
        metadata = pl.read_parquet_metadata(folder_of(model) / f"{table}.parquet")
        assert metadata["weights_sha256"] == loaded.checkpoint.sha256
    said = evaluation.filter(pl.col("variant") == "as_trained").rows(named=True)
    cases = list(evaluate.cases(loaded, parts, settings.of_stage(REFERENCE, "evaluation", model)))
    assert [case.about["tokens"] for _, case in cases] == [row["tokens"] for row in said]
    short = [(case, row) for (_, case), row in zip(cases, said, strict=True) if row["tokens"] < 40]
    assert len(short) > 40
    with torch.inference_mode():
        for case, row in short:
            logits = forward(loaded.model, case.ids, read=last(case.ids))[0, 0]
            probability = logits.double().softmax(-1)[case.target].item()
            assert probability == pytest.approx(row["target_probability"], abs=1e-4)


def test_settings_are_those_that_they_were_trained_with(model):
    training = tables.read("training", folder_of(model) / "training.parquet")
    assert training["step"][-1] == sum(phase.steps for phase in REFERENCE.models[model].training.phases)
    loaded = opened(folder_of(model), model)
    assert REFERENCE.models[model].config.items() <= loaded.checkpoint.config.items()


def test_they_copy_names_that_they_never_saw(evaluation, model):
    """At short distance all of them; the hybrid and the rotary one at every distance over filler of the published kind.

    Over filler that is full of other people, all three lose the name with distance; the cards show how far.
    """
    mean = evaluation.filter(pl.col("variant") == "as_trained", pl.col("names") == "held_out")
    mean = mean.group_by("filler", "repeats").agg(pl.col("target_probability").mean(), pl.col("tokens").max())
    assert mean.filter(pl.col("repeats") == 0)["target_probability"].min() > 0.9
    if model != "gpt2-mini":
        published = mean.filter(pl.col("filler") == "without_people")
        assert published["tokens"].max() > 1300
        assert published["target_probability"].min() > 0.8


def test_the_embedded_run_pins_them_and_says_what_they_are(model):
    chosen = config.load(ROOT / "config" / "config.yaml").models[model]
    assert "trained here" in chosen.label
    assert "small model trained here" in chosen.weights_note
    assert ROOT / chosen.source.path == folder_of(model)
    pinned = {name: hashlib.sha256((folder_of(model) / name).read_bytes()).hexdigest() for name in checkpoint.FILES}
    assert chosen.source.sha256 == pinned
