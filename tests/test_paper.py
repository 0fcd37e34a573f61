"""The configuration of the published runs: it parses, and it holds what the ledger asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokentrail import config
from tokentrail.stages.reproduction.ledger import NO_MODEL, read_all

ROOT = Path(__file__).parents[1]
PAPER = config.load(ROOT / "config/paper.yaml")
LEDGER = read_all(ROOT / path for path in PAPER.ledgers)
IN_WORDS = {"config", "checkpoint", "whole model", "all rows", "position table", "swap set"}
"""Inputs of the ledger that are no text."""


def test_every_model_is_pinned_to_a_commit():
    for model in PAPER.models.values():
        assert len(model.source.revision) == 40 and set(model.source.revision) <= set("0123456789abcdef")
    assert [name for name, model in PAPER.models.items() if not model.source.sha256] == ["granite-4.0-h-350m-base"]


def test_the_models_are_those_of_the_ledger():
    assert {figure.model for figure in LEDGER} - {NO_MODEL} == set(PAPER.models)


@pytest.mark.parametrize("stage", ["next_token", "lens", "residual", "attention", "mixing", "mlp", "block", "ablation"])
def test_every_prompt_that_the_ledger_has_figures_of_runs(stage):
    # Rows of weights, where more than their summary is asked for, are in the table `mixing`.
    stages = {"ablation": ["ablations"], "attention": ["attention", "mixing"]}.get(stage, [stage])
    runs = [name for each in stages for name in getattr(getattr(PAPER.stages, each), "prompts", None) or PAPER.prompts]
    asked = {figure.input for figure in LEDGER if figure.stage == stage and figure.needs_weights}
    assert {input for input in asked if input in PAPER.prompts} <= set(runs)


def test_every_text_that_the_ledger_cuts_into_tokens_is_there():
    cut = {figure.input for figure in LEDGER if figure.stage == "tokenize" and figure.model != NO_MODEL} - IN_WORDS
    there = {*PAPER.prompts, *PAPER.stages.merges.words}
    assert cut - there == {"unprinted sentence"}


def test_the_inputs_are_those_of_the_embedded_run():
    embedded = config.load(ROOT / "config/config.yaml")
    for name in set(embedded.prompts) & set(PAPER.prompts):
        assert embedded.prompts[name] == PAPER.prompts[name]
    assert embedded.stages.filler.fillers["town"] == PAPER.stages.filler.fillers["town"]
    assert embedded.stages.name_swaps.sets["five-names"] == PAPER.stages.name_swaps.sets["five-names"]
