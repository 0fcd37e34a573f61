"""Table `merges`: every step of every piece, ending in the tokenizer's own ids."""

from __future__ import annotations

import pytest
import tiny_tokenizer
import tokenizers
from tokenizers import pre_tokenizers
from tokentrail import tables
from tokentrail.errors import ConfigError
from tokentrail.stages.merges import measure as merges
from tokentrail.tables.files import divided
from tokentrail.weights.tokenizer import Tokenizer

WORDS = ["Alice", " Alice", "Mirabel", "127.0.0.1", "안녕", " it's"]
SETTINGS = {"model": "tiny", "words": WORDS, "prompts": {"p": {"text": "Alice gave  Bob\na book.", "target": " x"}}}


@pytest.fixture
def tokenizer():
    return Tokenizer(tiny_tokenizer.train(bos=True), "tokenizer", "tiny")


def test_every_step_of_every_piece(tokenizer):
    frame = tables.schema_of("merges").validate(merges.measure(tokenizer, SETTINGS), cast=True)
    for text in (*WORDS, SETTINGS["prompts"]["p"]["text"]):
        rows = frame.filter(prompt="p" if "gave" in text else text)
        ended = rows.filter(rows["token_ids"] != "")
        ids = [int(i) for said in ended["token_ids"] for i in said.split()]
        assert ids == tokenizer.following("", text), "without BOS"
        assert ended["piece"].to_list() == rows["piece"].unique().sort().to_list(), "one ending for each piece"
        start = rows.filter(step=0)
        assert sum(len(symbols.split()) for symbols in start["symbols"]) == len(text.encode())
        assert rows["bytes"].unique().to_list() == [len(text.encode())]
        for row in rows.filter(rows["step"] > 0).to_dicts():
            assert row["left"] + row["right"] in row["symbols"].split()
            assert row["rank"] is not None
    assert frame.filter(prompt="p")["words"][0] == 5
    assert frame.filter(prompt="p")["kind"][0] == "prompt"


def test_a_token_that_is_taken_out_whole_is_a_piece_without_merges(tokenizer):
    prompts = {"p": {"text": "Alice <s>gave", "target": " x"}}
    frame = merges.measure(tokenizer, SETTINGS | {"words": [], "prompts": prompts})
    ended = frame.filter(frame["token_ids"] != "")
    ids = [int(i) for said in ended["token_ids"] for i in said.split()]
    assert ids == tokenizer.following("", "Alice <s>gave")
    assert ended["piece"].to_list() == list(range(4))
    assert frame.filter(frame["symbols"] == "<s>").select("step", "rank", "token_ids").rows() == [(0, None, "0")]


def test_a_word_is_read_as_inside_a_text():
    inner = tiny_tokenizer.train()
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    prefixed = Tokenizer(inner, "never", "tiny")
    frame = merges.measure(prefixed, SETTINGS | {"words": ["Alice", " Alice"], "prompts": {}})
    first = frame.filter(step=0).select("prompt", "symbols").rows()
    assert first == [("Alice", "A l i c e"), (" Alice", "Ġ A l i c e")]
    whole = merges.measure(prefixed, SETTINGS | {"words": []})
    assert whole["symbols"][0].startswith("Ġ A"), "the text itself begins with the space that the tokenizer puts there"


def test_another_kind_of_tokenizer_gives_no_rows():
    inner = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
    assert merges.measure(Tokenizer(inner, "never", "tiny"), SETTINGS).is_empty()


def test_a_replay_that_ends_elsewhere_has_a_row_with_the_reason(tokenizer, monkeypatch):
    monkeypatch.setattr(merges, "replay", lambda bpe, text: ([], [1]))
    kept, refused = divided(merges.measure(tokenizer, SETTINGS))
    assert kept.is_empty() and "Alice" in refused["prompt"].to_list()
    reason = refused.filter(prompt="Alice")["not_measured"][0]
    assert reason.startswith("the replay of 'Alice' ends in the ids [1], but the tokenizer gives")


def test_a_word_that_cannot_be_read_has_a_row_with_the_reason(tokenizer):
    _, refused = divided(merges.measure(tokenizer, SETTINGS | {"words": [""]}))
    assert "is no token of its own" in refused["not_measured"][0]


def test_half_of_a_character_is_a_mistake_of_the_configuration(tokenizer):
    with pytest.raises(ConfigError, match="half of a surrogate pair"):
        merges.measure(tokenizer, SETTINGS | {"words": ["a\udc00"]})
