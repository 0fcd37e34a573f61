"""Tokens and numbers as readers see them."""

import pytest
from tokentrail.charts import text


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" Alice", "·Alice"),
        ("a b", "a·b"),
        ("\n\n", "↵↵"),
        ("\t", "⇥"),
        ("·", "<U+00B7>"),
        ("\u202eevil", "<U+202E>evil"),
        ("\u00a0", "<U+00A0>"),
        ("\u0301", "◌\u0301"),
        ("👩\u200d💻", "👩<U+200D>💻"),
        ("שלום", "שלום"),
        ("<b>", "<b>"),
        ("", ""),
    ],
)
def test_a_token_is_legible_and_has_one_reading(token, shown):
    assert text.visible(token) == shown


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        (0.8149, "0.815"),
        (0.0009, "< 0.001"),
        (1e-22, "< 0.001"),
        (0.99999, "> 0.999"),
        (0, "0"),
        (1, "1"),
        (0.001, "0.001"),
    ],
)
def test_a_probability_is_never_rounded_to_nothing_or_to_certainty(p, shown):
    assert text.probability(p) == shown


@pytest.mark.parametrize(
    ("x", "shown"), [(901.67, "902"), (33.81, "33.8"), (0.02415, "0.0242"), (1453.2, "1,453"), (0, "0"), (100.0, "100")]
)
def test_a_size_has_three_digits(x, shown):
    assert text.size(x) == shown


def test_other_numbers():
    assert text.scientific(1.02e-4) == "1.0e-4"
    assert text.scientific(0) == "0"
    assert text.percent(0.0004) == "< 0.1%"
    assert text.percent(0.5919) == "59.2%"
    assert text.percent(1) == "100%"
    assert text.millions(134515008) == "134.5 M"
    assert text.millions(576) == "576"
    assert text.shorten("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("n", "said"),
    [(7, "7 FLOP"), (1_500, "1.50 kFLOP"), (2_400_000_000, "2.40 GFLOP"), (281_513_263_104, "282 GFLOP")],
)
def test_operations(n, said):
    assert text.operations(n) == said


@pytest.mark.parametrize(
    ("n", "said"), [(512, "512 bytes"), (1536, "1.50 KiB"), (72 * 2**20, "72.0 MiB"), (500 * 2**20, "500 MiB")]
)
def test_sizes_in_bytes(n, said):
    assert text.binary_bytes(n) == said


def test_symbols_of_bytes_are_read_back():
    assert text.of_symbols("ĠFrance") == "·France"
    assert text.of_symbols("ìķĪ") == "안" and text.of_symbols("ì") == "<0xEC>"
    assert text.of_symbols("안") == "안", "a character that is no symbol stands for itself"


def test_numbers_below_zero_have_a_minus():
    assert text.size(-11.43) == "−11.4"
