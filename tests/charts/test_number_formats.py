"""Numbers as readers see them, over their whole ranges: legible, in step with their values, and never a false zero."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokentrail.charts import text
from tokentrail.wording import words

SHARES = st.floats(0, 1) | st.floats(0, 0.002) | st.floats(0.998, 1)
NUMBERS = st.floats(-1e15, 1e15) | st.floats(-1e-2, 1e-2) | st.floats(990, 1010)
COUNTS = st.integers(0, 10**16) | st.integers(0, 14).flatmap(
    lambda k: st.integers(0, 200).map(lambda d: 10**k + d - 100)
)
BYTES = st.integers(0, 2**50) | st.integers(0, 4).flatmap(
    lambda k: st.integers(0, 4000).map(lambda d: 2 ** (10 * k) - d)
)
UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{unit}iB": 1024 ** (power + 1) for power, unit in enumerate("KMGT")
}


def read(shown: str) -> float:
    """The number that a reader takes from what is shown, whatever sign or exponent it is written with."""
    plain = shown.replace("−", "-").replace(",", "")
    digits, _, exponent = plain.partition(" × 10")
    raised = {ord(above): str(digit) for digit, above in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")} | {ord("⁻"): "-"}
    return float(digits) * 10 ** int(exponent.translate(raised) or 0)


@given(SHARES)
def test_a_probability_keeps_its_side_of_nothing_and_of_certainty(p):
    shown = text.probability(p)
    assert re.fullmatch(r"0|1|< 0\.001|> 0\.999|0\.\d{3}", shown)
    assert (shown == "0") == (p == 0) and (shown == "1") == (p == 1)
    assert "0.000" not in shown and "1.000" not in shown
    assert words.with_probability(p).split()[-1] == shown.split()[-1]
    assert words.with_probability(p).startswith("with a probability ") == (shown[0] in "<>")


@given(SHARES | st.floats(0, 50) | st.floats(-3, 0))
def test_a_percentage_keeps_its_side_of_nothing_and_of_all(share):
    shown = text.percent(share)
    assert re.fullmatch(r"0%|−?(100|< 0\.1|> 99\.9|\d+\.\d)%", shown)
    assert (shown == "0%") == (share == 0) and (shown == "100%") == (share == 1)
    assert shown not in ("0.0%", "−0.0%") and (shown != "100.0%" or share > 1)


@given(NUMBERS)
def test_a_size_has_three_digits_whatever_it_is(x):
    shown = text.size(x)
    assert "e" not in shown and "-" not in shown
    assert read(shown) == pytest.approx(x, rel=0.00501, abs=1e-320)
    assert (shown == "0") == (x == 0)


@given(NUMBERS)
def test_what_rounds_to_zero_has_no_sign(x):
    for shown in (text.decimals(x), text.signed(x)):
        assert "-" not in shown and shown not in ("−0.00", "+0.00")
        assert read(shown) == pytest.approx(x, abs=0.00501, rel=1e-9)
    assert text.signed(x)[0] in "+−" or text.signed(x) == "0.00"


@given(st.floats(1e-300, 1e300))
def test_scientific_notation_has_two_digits(x):
    digits, exponent = text.scientific(x).split("e")
    assert re.fullmatch(r"\d\.\d", digits) and int(exponent) == pytest.approx(math.log10(x), abs=1.01)


@given(COUNTS)
def test_a_count_stays_below_a_thousand_of_its_unit(n):
    for shown in (text.millions(n), text.operations(n).replace("FLOP", "").strip()):
        number, _, unit = shown.partition(" ")
        assert "e" not in number
        assert float(number.replace(",", "")) < 1000 or (unit in "TP" and unit)
        assert float(number.replace(",", "")) * UNITS[unit] == pytest.approx(n, rel=0.051)


@given(BYTES)
def test_bytes_stay_below_1024_of_their_unit(n):
    number, unit = text.binary_bytes(n).split(" ")
    assert "e" not in number and (unit == "byte") == (n == 1)
    assert float(number.replace(",", "")) < 1024 or unit == "TiB"
    assert float(number.replace(",", "")) * UNITS.get(unit, 1) == pytest.approx(n, rel=0.00501)


@given(st.integers(1, 10**9), st.sampled_from(["layer", "prompt"]))
def test_one_two_and_many(n, noun):
    said = words.every(n, noun)
    assert said == {1: f"the one {noun}", 2: f"both {noun}s"}.get(n, f"all {n:,} {noun}s")
    assert words.counted(n, noun).endswith(noun) == (n == 1)
    assert "(s)" not in said


@given(
    st.integers(0, 10**6).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))).filter(lambda t: t[1])
)
def test_all_is_said_of_all_and_none_of_none(case):
    part, total = case
    said = words.tally(part, total)
    assert ("all" in said or "both" in said or said == "in the one case") == (part == total)
    assert ("none" in said or "not" in said) == (part == 0)
    assert (f"{part:,} of {total:,}" in said) == (0 < part < total)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_ranges_hold_the_numbers_that_were_given(numbers):
    told = set()
    for span in re.split(r", | and ", words.ranges(sorted(numbers))):
        first, _, last = span.partition(" to ")
        told |= set(range(int(first), int(last or first) + 1))
    assert told == numbers


def test_where_several_tie_they_are_named_or_counted():
    assert words.at_layers([3]) == "layer 3"
    assert words.at_layers([5, 0]) == "layers 0 and 5"
    assert words.at_layers(range(7)) == "7\u00a0layers"
