"""The cache stage: cached decode says what recomputation says, and the bytes are those of the formula."""

from __future__ import annotations

import re

import polars as pl
import pytest
import tiny_tokenizer
import torch
from random_models import VARIANTS, build
from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward
from tokentrail.stages.cache import measure as cache
from tokentrail.tables.files import divided
from tokentrail.weights.load import Loaded
from tokentrail.weights.tokenizer import Tokenizer

CHOSEN = {"steps": 3, "pieces": [1, 3, 8]}
WITHIN = 1e-5


def measured(loaded, settings, **changes) -> pl.DataFrame:
    return cache.measure(loaded, settings | CHOSEN | changes)


def test_it_fits_its_schema_and_repeats_itself(loaded, settings, tmp_path):
    for name in ("one", "two"):
        tables.write("cache", measured(loaded, settings), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_every_schedule_says_what_recomputation_says(loaded, settings):
    frame = measured(loaded, settings)
    assert set(frame["kind"]) == {"decode", "chunked_prefill", "continuation", "batch"}
    for column in ("max_abs_logit_diff", "reference_max_abs_logit_diff", "max_abs_error_ours"):
        assert frame[column].max() < WITHIN, column
    assert (frame["mean_abs_logit_diff"] <= frame["max_abs_logit_diff"]).all()
    assert frame["top1_agrees"].all() and frame["reference_top1_agrees"].all()
    assert frame["max_abs_logit_diff"].max() > 0, "two ways of computing are compared, not one with itself"


def test_the_schedules_bring_the_tokens_that_they_name(loaded, settings):
    frame = measured(loaded, settings)
    n = len(loaded.tokenizer.encode(settings["prompts"]["alice"]["text"]))
    alice = frame.filter(prompt="alice")
    sizes = {
        (kind, piece): rows["tokens"].to_list()
        for (kind, piece), rows in alice.group_by("kind", "piece", maintain_order=True)
    }
    assert sizes[("decode", 1)] == sizes[("batch", 1)] == [n, 1, 1, 1]
    assert sizes[("continuation", 3)] == [n, 3]
    assert sizes[("chunked_prefill", 1)] == [1] * n
    assert sizes[("chunked_prefill", 8)] == [8] * (n // 8) + [n % 8] * (n % 8 > 0)
    assert sizes[("chunked_prefill", n)] == [n]
    read = alice.with_columns(sum=pl.col("tokens").cum_sum().over("kind", "piece"))
    assert read["sum"].equals(read["cache_tokens"])


def test_the_bytes_are_those_of_the_formula_and_the_states_stand_still(loaded, settings):
    frame = measured(loaded, settings)
    assert (frame["kv_bytes"] + frame["conv_bytes"] + frame["state_bytes"]).equals(frame["formula_bytes"])
    per_token = conv = state = 0
    for layer in loaded.model.spec.layers:
        if isinstance(layer.mixer, specs.Attention):
            per_token += 2 * layer.mixer.kv_heads * layer.mixer.head_dim * 4
        else:
            mamba = layer.mixer
            conv += 4 * (mamba.conv_width - 1) * (mamba.heads * mamba.head_dim + 2 * mamba.groups * mamba.state_size)
            state += 4 * mamba.heads * mamba.head_dim * mamba.state_size
    assert frame["kv_bytes"].equals(frame["cache_tokens"] * per_token)
    assert set(frame["conv_bytes"]) == {conv} and set(frame["state_bytes"]) == {state}
    assert (frame["reserved_bytes"] >= frame["formula_bytes"]).all()


def loaded_variant(name, folder) -> Loaded:
    inner = tiny_tokenizer.train()
    pair = build(VARIANTS[name] | {"vocab_size": inner.get_vocab_size()}, folder)
    return Loaded(pair.ours(), Tokenizer(inner, "tokenizer", "tiny"), pair.checkpoint, torch.device("cpu"))


def test_without_attention_nothing_grows_and_transformers_keeps_no_cache(settings, tmp_path):
    frame = measured(loaded_variant("granite-mamba-only", tmp_path), settings)
    tables.write("cache", frame, tmp_path / "t")
    assert frame["max_abs_logit_diff"].max() < WITHIN
    assert frame["kv_bytes"].max() == 0 and frame["formula_bytes"].n_unique() == 1
    assert frame["reference_max_abs_logit_diff"].is_null().all() and frame["max_abs_error_reference"].is_null().all()


def test_it_shows_whose_error_it_is(settings, tmp_path):
    """transformers leaves the limits on dt out of its decode step, so its own cached logits part from its full ones."""
    loaded = loaded_variant("granite-dt-limits", tmp_path)
    decode = measured(loaded, settings).filter(pl.col("kind") == "decode", pl.col("step") > 0)
    assert decode["max_abs_logit_diff"].max() < WITHIN
    assert decode["reference_max_abs_logit_diff"].max() > 1e-3
    assert decode["max_abs_error_reference_full"].max() < WITHIN < decode["max_abs_error_reference"].max()


def test_one_prompt_makes_no_batch(loaded, settings):
    prompts = {"france": settings["prompts"]["france"]}
    assert "batch" not in set(measured(loaded, settings, prompts=prompts)["kind"])


def test_a_continuation_beyond_the_positions_is_refused(loaded, settings):
    if loaded.model.spec.learned_positions is None:
        pytest.skip("this model has no position table")
    kept, refused = divided(measured(loaded, settings, steps=250))
    assert set(kept["prompt"]) == {"france"}
    (row,) = refused.to_dicts()
    assert row["prompt"] == "alice"
    assert re.search(r"prompt alice has \d+ tokens and stages.cache.steps is 250, .* 256 pos", row["not_measured"])


def test_a_cache_that_forgets_is_seen(loaded, settings, monkeypatch):
    def forgetful(model, ids, cache=None, lengths=None, **more):
        said = forward(model, ids, None, lengths, **more)
        if cache is not None:
            forward(model, ids, cache, lengths, **more)
        return said

    monkeypatch.setattr(cache, "forward", forgetful)
    frame = measured(loaded, settings)
    first, later = frame.filter(pl.col("step") == 0), frame.filter(pl.col("step") > 0)
    assert first["max_abs_logit_diff"].max() < WITHIN
    assert later["max_abs_logit_diff"].min() > 100 * WITHIN
