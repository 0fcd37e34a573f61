"""The replay of byte-level BPE ends in the tokenizer's own ids, for any text, or refuses it in one sentence."""

from __future__ import annotations

import json
import random
import re

import pytest
import tiny_tokenizer
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from split_patterns import CL100K
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokentrail.errors import ConfigError, PromptError
from tokentrail.weights.bpe import byte_level_bpe, merged, replay


def plain() -> tokenizers.Tokenizer:
    return tiny_tokenizer.train()


def split_by_pattern() -> tokenizers.Tokenizer:
    """As Qwen's: NFC, a pattern of its own, and bytes without ByteLevel's pattern."""
    inner = tiny_tokenizer.train()
    inner.normalizer = normalizers.NFC()
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("|".join(CL100K)), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return inner


def digits_apart() -> tokenizers.Tokenizer:
    """As SmolLM2's."""
    inner = tiny_tokenizer.train()
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return inner


def prefixed() -> tokenizers.Tokenizer:
    """Puts a space before a text."""
    inner = tiny_tokenizer.train()
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return inner


def whole_first() -> tokenizers.Tokenizer:
    """As Llama 3's: a piece that is in the vocabulary is taken whole. Some tokens here cannot be reached by merges."""
    description = json.loads(tiny_tokenizer.train().to_str())
    size = len(description["model"]["vocab"])
    description["model"]["vocab"] |= {"Ġqueen": size, "zzz": size + 1}
    description["model"]["ignore_merges"] = True
    return tokenizers.Tokenizer.from_str(json.dumps(description))


KINDS = {make.__name__: make() for make in (plain, split_by_pattern, digits_apart, prefixed, whole_first)}
SPECIAL = "<s>"


def ids_of(inner: tokenizers.Tokenizer, text: str) -> list[int]:
    bpe = byte_level_bpe(inner)
    return [i for piece in bpe.pieces(text) for i in bpe.ids([*bpe.steps(piece)][-1].symbols)]


def assert_exact(inner: tokenizers.Tokenizer, text: str) -> None:
    assert ids_of(inner, text) == inner.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=80).filter(lambda text: SPECIAL not in text))
def test_any_text(kind, text):
    assert_exact(KINDS[kind], text)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(
    text=st.lists(st.sampled_from([*"aAlicegvbBokn .,1é", " gave", " the", " book", "\n"]), max_size=60).map("".join)
)
def test_texts_in_which_much_is_merged(kind, text):
    assert_exact(KINDS[kind], text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",  # right to left
        "\u202eabc\u202c",
        "e\u0301 \u0061\u0308\u0323 \u1112\u1161\u11ab",  # combining marks, and a syllable in three parts
        "👩\u200d💻👍🏽",
        "a\x00b\ufeff\ufffd",
        "\U0010ffff",
        "queen queenqueen zzz zz zzzz",
    ],
    ids=lambda text: repr(text)[:12],
)
def test_texts_that_are_hard(kind, text):
    assert_exact(KINDS[kind], text)


@pytest.mark.parametrize(
    "text",
    ["a" * 10_000, "ab" * 5_000, "".join(random.Random(0).choices("abcdefghijklmnoe", k=10_000)), "שלום" * 2_500],
    ids=["one letter", "two letters", "random letters", "right to left"],
)
def test_ten_thousand_characters_without_a_break(text):
    assert_exact(KINDS["plain"], text)


def test_half_of_a_surrogate_pair_is_refused():
    with pytest.raises(ConfigError, match="holds half of a surrogate pair"):
        ids_of(KINDS["plain"], "a\ud800b")


def test_a_token_that_is_taken_out_whole_is_refused():
    with pytest.raises(PromptError, match=re.escape("holds '<s>', which the tokenizer takes out whole")):
        ids_of(KINDS["plain"], "a <s> b")


def test_a_symbol_without_a_token_is_refused():
    bpe = byte_level_bpe(KINDS["plain"])
    with pytest.raises(PromptError, match="no token for the symbol '→'"):
        bpe.ids(["→"])


def test_the_lowest_rank_goes_first_and_everywhere():
    ranks = {("a", "b"): 1, ("b", "c"): 0, ("a", "bc"): 2, ("b", "a"): 5}
    steps = list(replay("abcabbc", ranks))
    assert [step.rank for step in steps] == [None, 0, 1, 2]
    assert [step.symbols for step in steps[1:]] == [
        ("a", "bc", "a", "b", "bc"),
        ("a", "bc", "ab", "bc"),
        ("abc", "ab", "bc"),
    ]
    assert (steps[1].left, steps[1].right) == ("b", "c")


def test_overlapping_pairs_are_joined_from_the_left():
    assert merged("aaa", "a", "a") == ("aa", "a")
    assert merged("aaaa", "a", "a") == ("aa", "aa")
    assert merged(("ab", "c"), "a", "b") == ("ab", "c")
    assert merged((), "a", "b") == ()


def test_a_piece_taken_whole_has_one_step_without_a_merge():
    steps = list(byte_level_bpe(KINDS["whole_first"]).steps("Ġqueen"))
    assert [step.symbols for step in steps] == [tuple("Ġqueen"), ("Ġqueen",)]
    assert steps[1].rank is None


@pytest.mark.parametrize(
    "other",
    [
        tokenizers.Tokenizer(models.Unigram([("a", 0.0)], unk_id=0)),
        tokenizers.Tokenizer(models.BPE({"a": 0}, [])),
        tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a")),
    ],
    ids=["unigram", "characters", "words"],
)
def test_another_kind_of_tokenizer_has_no_replay(other):
    assert byte_level_bpe(other) is None


@pytest.mark.parametrize("changed", [{"dropout": 0.1}, {"byte_fallback": True}, {"end_of_word_suffix": "</w>"}])
def test_bpe_that_is_not_plain_has_no_replay(changed):
    description = json.loads(tiny_tokenizer.train().to_str())
    description["model"] |= changed
    inner = tokenizers.Tokenizer.from_str(json.dumps(description))
    inner.decoder = decoders.ByteLevel()
    assert byte_level_bpe(inner) is None
