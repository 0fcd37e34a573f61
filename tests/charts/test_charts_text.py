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
