"""Ids, bytes and targets: every byte of a prompt is in one token, and a target is what the tokenizer makes of it."""

from __future__ import annotations

import pytest
import tiny_tokenizer
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import normalizers
from tokentrail.bytelevel import legible
from tokentrail.errors import ConfigError, PromptError, WeightsError
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.tokenizer import Tokenizer, open_tokenizer

PLAIN = tiny_tokenizer.train()


def tokenizer(bos="tokenizer", inner=PLAIN):
    return Tokenizer(inner, bos, "tiny")


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=60).filter(lambda t: "<s>" not in t))
def test_pieces_join_to_the_prompt_byte_for_byte(text):
    pieces = tokenizer().pieces(text)
    raw = text.encode()
    assert b"".join(raw[p.byte_start : p.byte_end] for p in pieces) == raw
    assert [p.byte_start for p in pieces[1:]] == [p.byte_end for p in pieces[:-1]]
    assert [p.token_id for p in pieces] == tokenizer().encode(text)


def test_bytes_that_are_no_whole_character_are_shown():
    pieces = tokenizer().pieces("안")
    assert [p.token for p in pieces] == ["<0xEC>", "<0x95>", "<0x88>"]
    assert legible("é→".encode()) == "é→"
    assert legible(b"a\xff\xc3") == "a<0xFF><0xC3>"


def test_an_id_without_a_token_is_shown_as_such():
    assert tokenizer().token(10_000) == "<id 10000>"


@pytest.mark.parametrize(
    ("own", "bos", "prefix", "policy"),
    [
        (False, "tokenizer", [], "tokenizer does not add it"),
        (False, "never", [], "tokenizer does not add it"),
        (False, "always", [0], "added, guessed from its name"),
        (True, "tokenizer", [0], "added"),
        (True, "always", [0], "added"),
        (True, "never", [], "left off, as bos: never asks"),
    ],
)
def test_the_bos_policy_is_followed_once_and_recorded(own, bos, prefix, policy):
    made = tokenizer(bos, tiny_tokenizer.train(bos=own))
    bare = PLAIN.encode("Alice gave").ids
    assert made.encode("Alice gave") == prefix + bare
    assert made.bos_policy == policy
    assert [p.special for p in made.pieces("Alice gave")] == [True] * len(prefix) + [False] * len(bare)


def test_always_without_a_bos_token_is_refused():
    bare = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
    with pytest.raises(ConfigError, match=r"models\.tiny\.bos is 'always'"):
        tokenizer("always", bare)


def test_a_target_is_cut_in_context():
    made = tokenizer()
    pieces = made.following("gave the book back to", " Alice")
    assert made.token(pieces[0]).startswith(" A")
    assert made.encode("gave the book back to") + pieces == made.encode("gave the book back to Alice")


@pytest.mark.parametrize("word", ["", "ok"])
def test_a_target_that_is_no_token_is_refused(word):
    with pytest.raises(PromptError, match="is no token of its own after"):
        tokenizer().following("gave the bo", word)


def test_an_empty_prompt_is_refused():
    with pytest.raises(PromptError, match="a prompt for tiny is empty"):
        tokenizer().encode("")


def test_a_tokenizer_that_rewrites_the_prompt_is_refused():
    inner = tiny_tokenizer.train()
    inner.normalizer = normalizers.Lowercase()
    with pytest.raises(PromptError, match="rewrites the prompt 'Alice'"):
        tokenizer(inner=inner).pieces("Alice")


@pytest.mark.parametrize("content", [None, "{", '{"model": {}}'])
def test_a_tokenizer_file_that_is_missing_or_damaged_is_refused(tmp_path, content):
    file = None if content is None else tmp_path / "tokenizer.json"
    if file:
        file.write_text(content)
    with pytest.raises(WeightsError, match=r"tokenizer\.json"):
        open_tokenizer(Checkpoint({}, (), file, "0" * 64, {}), "tokenizer", "tiny")


def test_a_character_without_a_token_is_named():
    inner = tokenizers.Tokenizer(tokenizers.models.BPE({"<unk>": 0, "a": 1, "b": 2}, [], unk_token="<unk>"))
    with pytest.raises(PromptError, match="no token for '→' in the prompt 'a→b'"):
        tokenizer(inner=inner).pieces("a→b")
