"""What write-ups on quantization leave open: each choice that was run is tried, and the one that fits most is taken.

What a group's largest weight is divided by, and along what weights are adjacent, is seldom printed. The figures that
depend on it select from the tables of `views.CHOSEN`, which hold the schemes of one choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.query import words
from tokentrail.stages.reproduction.views import CHOSEN

DEFAULTS = {"divisor": "largest_code", "grouping": "input"}
"""What is left open, and what a scheme has where it says nothing."""
PLAIN = {"symmetric": True, "scale": "absmax", "outliers": 0.0, "packed": False}

Choice = tuple[str, ...]
USUAL: Choice = tuple(DEFAULTS.values())


def is_open(figure: Figure) -> bool:
    """Whether the figure depends on a choice."""
    return not words(figure.measured).isdisjoint(CHOSEN)


def choices(schemes: Mapping[str, dict[str, Any]]) -> list[Choice]:
    """The choices that the plain schemes of a run make, in their order."""
    return list(dict.fromkeys(map(of_scheme, filter(plain, schemes.values()))))


def plain(scheme: dict[str, Any]) -> bool:
    return all(scheme.get(key, default) == default for key, default in PLAIN.items())


def of_scheme(scheme: dict[str, Any]) -> Choice:
    return tuple(scheme.get(key, default) for key, default in DEFAULTS.items())


def cut(
    tables: Mapping[str, pl.LazyFrame], schemes: Mapping[str, dict[str, Any]], choice: Choice
) -> dict[str, pl.LazyFrame]:
    """The tables of `views.CHOSEN`: the rows of the plain schemes with this choice, and of the unquantized model."""
    others = [name for name, scheme in schemes.items() if not plain(scheme) or of_scheme(scheme) != choice]
    return {name: tables[whole].filter(~pl.col("scheme").is_in(others)) for name, whole in CHOSEN.items()}


def most(counted: Mapping[Choice, int]) -> Choice:
    """The choice that reproduces most figures; of several, the first; what is usual if none was run."""
    return max(counted, key=lambda choice: counted[choice], default=USUAL)


def told(counted: Mapping[Choice, int], taken: Choice) -> str:
    """The choice that was taken in words, and how the others fare; empty if none was run."""
    if not counted:
        return ""
    others = ", ".join(f"{counted[choice]} with {named(choice)}" for choice in counted if choice != taken)
    taken_words = f"with {named(taken)}, {counted[taken]} figures of quantization reproduce"
    return f"{taken_words} ({others})" if others else taken_words


def named(choice: Choice) -> str:
    return " and ".join(f"{key} {value}" for key, value in zip(DEFAULTS, choice, strict=True))
