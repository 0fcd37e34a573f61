"""The whole distribution: decoding rules on the same logits, greedy steps, and prompts in every combination."""

from __future__ import annotations

import math

import polars as pl
import pytest
import torch
from house import measure_module
from tokentrail import tables
from tokentrail.forward.frame import forward, last
from tokentrail.measure.answers import entropy_bits, log_probabilities
from tokentrail.stages.distribution import decoding
from tokentrail.stages.distribution import measure as distribution
from tokentrail.tables.files import divided

RULES = {"temperatures": [0.5, 2.0], "top_k": [1, 3], "top_p": [0.5, 1.0]}
EXPERIMENT = {
    "template": "{before}{wording}",
    "target": " Paris",
    "factors": {
        "before": {"nothing": "", "japan": "The capital of Japan is Tokyo. "},
        "wording": {"plain": "The capital of France is", "short": "France is"},
    },
}
OWN = {"decoding": RULES, "continue_for": 3, "experiments": {"capital": EXPERIMENT}}
LOGITS = torch.tensor([1.0, 3.0, 2.0, 3.0, -1.0])


@pytest.fixture
def measured(loaded, settings) -> pl.DataFrame:
    return tables.schema_of("distribution").validate(distribution.measure(loaded, settings | OWN), cast=True)


def test_each_prompt_has_one_row_as_computed_and_one_for_each_rule(measured, settings):
    for prompt in settings["prompts"]:
        first = measured.filter(prompt=prompt, step=0)
        assert first["decoding"].to_list() == ["none", *(name for name, _ in decoding.rules(RULES))]
        assert first["top1_token"].n_unique() == 1 and first["target_rank"].n_unique() == 1, "no rule changes the order"


def test_greedy_steps_are_those_of_the_model_run_anew(loaded, settings, measured):
    ids = loaded.tokenizer.encode(settings["prompts"]["france"]["text"])
    greedy = measured.filter(prompt="france", decoding="none").sort("step")
    assert greedy["step"].to_list() == [0, 1, 2, 3]
    for row in greedy.to_dicts():
        batch = torch.tensor([ids])
        with torch.inference_mode():
            log_p = forward(loaded.model, batch, read=last(batch))[0, 0].double().log_softmax(0)
        assert row["tokens"] == len(ids)
        assert row["entropy_bits"] == pytest.approx(entropy_bits(log_p), abs=1e-4)
        assert row["top1_token"] == loaded.tokenizer.token(int(log_p.argmax()))
        ids.append(int(log_p.argmax()))


def test_a_continuation_ends_with_the_positions(loaded, settings):
    room = loaded.model.spec.learned_positions
    if room is None:
        pytest.skip("this model has no position table")
    one = len(loaded.tokenizer.encode("a"))
    text = "a" + " a" * ((room - 1 - one) // (len(loaded.tokenizer.encode("a a")) - one))
    tokens = len(loaded.tokenizer.encode(text))
    prompts = {"long": {"text": text, "target": " a"}}
    frame = distribution.measure(loaded, settings | OWN | {"prompts": prompts, "experiments": {}, "continue_for": 9})
    assert frame.filter(decoding="none")["tokens"].to_list() == list(range(tokens, room + 1))


def test_an_experiment_is_run_in_every_combination(loaded, measured):
    rows = measured.filter(experiment="capital")
    assert rows["levels"].to_list() == [
        "before: nothing, wording: plain",
        "before: nothing, wording: short",
        "before: japan, wording: plain",
        "before: japan, wording: short",
    ]
    batch = torch.tensor([loaded.tokenizer.encode("The capital of Japan is Tokyo. France is")])
    with torch.inference_mode():
        log_p = forward(loaded.model, batch, read=last(batch))[0, 0].double().log_softmax(0)
    assert rows["entropy_bits"][3] == pytest.approx(entropy_bits(log_p))
    target = loaded.tokenizer.following("France is", " Paris")[0]
    assert rows["target_probability"][3] == pytest.approx(log_p[target].exp().item())


def test_a_combination_that_cannot_be_run_is_named(loaded, settings):
    bad = EXPERIMENT | {"template": "{before}{wording}", "factors": EXPERIMENT["factors"] | {"wording": {"none": ""}}}
    _, refused = divided(distribution.measure(loaded, settings | OWN | {"experiments": {"bad": bad}}))
    (row,) = refused.to_dicts()
    assert row["experiment"] == "bad" and "wording: none" in row["levels"] and "empty" in row["not_measured"]


def test_a_temperature_raises_odds_to_a_power():
    plain, hot = log_probabilities(LOGITS), decoding.temperature(LOGITS, 2.0)
    assert (hot[1] - hot[4]).item() == pytest.approx((plain[1] - plain[4]).item() / 2)
    assert entropy_bits(decoding.temperature(LOGITS, 0.5)) < entropy_bits(plain) < entropy_bits(hot)
    assert torch.equal(decoding.temperature(LOGITS, 1.0), plain)


@pytest.mark.parametrize(("k", "kept"), [(1, [1]), (2, [1, 3]), (3, [1, 2, 3]), (99, [0, 1, 2, 3, 4])])
def test_top_k_keeps_the_most_likely(k, kept):
    log_p = decoding.top_k(LOGITS, k)
    assert (log_p > -math.inf).nonzero()[:, 0].tolist() == kept
    assert log_p.exp().sum().item() == pytest.approx(1)


@pytest.mark.parametrize(("p", "kept"), [(0.01, [1]), (0.45, [1, 3]), (0.79, [1, 3]), (0.9, [1, 2, 3]), (1.0, 5)])
def test_top_p_keeps_the_fewest_that_hold_the_mass(p, kept):
    log_p = decoding.top_p(LOGITS, p)
    left = (log_p > -math.inf).nonzero()[:, 0].tolist()
    assert left == kept if isinstance(kept, list) else len(left) == kept
    assert log_probabilities(LOGITS)[left].exp().sum().item() >= p - 1e-9
    assert log_p.exp().sum().item() == pytest.approx(1)


def test_rules_leave_the_odds_of_what_they_keep(measured):
    for row in measured.filter(pl.col("decoding").str.starts_with("top-k 3")).to_dicts():
        assert row["tokens_left"] == 3 and row["entropy_bits"] <= math.log2(3) + 1e-9
    plain = log_probabilities(LOGITS)
    cut = decoding.top_k(LOGITS, 3)
    assert (cut[1] - cut[2]).item() == pytest.approx((plain[1] - plain[2]).item())


def test_the_first_row_is_next_tokens_own(loaded, settings, measured):
    said = measure_module("next_token").measure(loaded, settings)
    for prompt in settings["prompts"]:
        row = measured.filter(prompt=prompt, step=0, decoding="none").row(0, named=True)
        target = said.filter(prompt=prompt, is_target=True).row(0, named=True)
        assert row["target_probability"] == pytest.approx(target["probability"], rel=1e-5)
        assert row["target_rank"] == target["rank"]
