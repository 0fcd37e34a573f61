"""Words and markup that sentences are put together from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from tokentrail.charts.text import probability, scientific, visible, whole

MANY = 4
"""More places than this are counted, and not told one by one."""


def chip(text: str) -> Markup:
    """A token inside a sentence."""
    return Markup('<bdi class="token">{}</bdi>').format(visible(text))


def power(x: float) -> Markup:
    """A small number in scientific notation, as 1.0 × 10⁻⁴."""
    digits, mark, exponent = scientific(x).partition("e")
    if not mark:
        return Markup(digits)
    return Markup("{}&nbsp;×&nbsp;10<sup>{}</sup>").format(digits, exponent.replace("-", "−"))


def in_words(n: int) -> str:
    """A small number as it opens a sentence: `One`, `Four`; digits from ten on."""
    words = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    return words[n] if n < len(words) else whole(n)


def counted(n: int, singular: str, plural: str = "") -> str:
    """`1 prompt`, `2 prompts`, `1,410 tokens`, with a space that does not break."""
    return f"{whole(n)}\u00a0{singular if n == 1 else plural or singular + 's'}"


def listed(items: Sequence[Any]) -> Markup:
    """`a`, `a and b`, `a, b and c`."""
    head, tail = items[:-1], items[-1:]
    if not head:
        return Markup("").join(tail)
    return Markup(", ").join(head) + Markup(" and ") + Markup("").join(tail)


def with_probability(p: float) -> str:
    """`with probability 0.815`, or in words where three decimals do not reach."""
    bounds = {"<": "below", ">": "above"}
    sign, _, bound = probability(p).rpartition(" ")
    return f"with a probability {bounds[sign]} {bound}" if sign else f"with probability {bound}"


def tally(part: int, total: int) -> str:
    """`in all 5 cases`, `in none of 5 cases`, `in 3 of 5 cases`."""
    cases = "case" if total == 1 else "cases"
    if total == 1:
        return "in the one case" if part else "not in the one case"
    if part == total:
        return "in both cases" if total == 2 else f"in all {whole(total)} {cases}"
    return f"in none of {whole(total)} {cases}" if part == 0 else f"in {whole(part)} of {whole(total)} {cases}"


def percent_of(level: float) -> str:
    return f"{100 * level:g}%"


def every(n: int, noun: str) -> str:
    """`the one layer`, `both layers`, `all 12 layers`: as many as there are."""
    return f"the one {noun}" if n == 1 else f"both {noun}s" if n == 2 else f"all {whole(n)} {noun}s"


def at_layers(layers: Sequence[int]) -> str:
    """`layer 3`, `layers 0 and 5`, `12 layers`: where something is the case, several if they tie."""
    if len(layers) > MANY:
        return counted(len(layers), "layer")
    return f"{plural('layer', len(layers))} {ranges(sorted(layers))}"


def ranges(numbers: Sequence[int]) -> str:
    """`0`, `0 and 1`, `0 to 4, 7 and 9 to 12`: whole numbers in order, runs of three or more as spans."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    spans = [span for run in runs for span in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(n) for n in run])]
    return str(listed(spans))


def plural(word: str, n: int) -> str:
    return word if n == 1 else f"{word}s"


def sentence_case(sentence: str) -> Markup:
    """The sentence with a capital first letter; it must not begin with markup."""
    return Markup(sentence[:1].upper()) + Markup(sentence[1:])
