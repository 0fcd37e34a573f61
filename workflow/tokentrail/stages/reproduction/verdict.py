"""When a measured value is the published one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tokentrail.stages.reproduction.ledger import Figure

FLOAT_NOISE = 2e-5
"""What float32 on another processor may move a figure that is printed with six digits by, for each unit of it."""
SIX_DIGITS = 1e-6
"""The tolerance of a figure printed with six decimals or more."""
DEEP = 1000.0
"""From here on, a rank or a count of tokens may move by float noise among near-ties: it is judged within DEEP_SHARE."""
DEEP_SHARE = 0.01
EXACT = 1e-9
"""Two numbers are the same if they differ by no more than this share: the rounding of a division or a product."""
UNITS = {"percent": 0.01, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "GB": 1e9, "GB/s": 1e9}
"""What a unit of the ledger is in shares, bytes, or bytes/s, which is what tables hold."""


@dataclass(frozen=True)
class Verdict:
    agrees: bool
    tolerance: float | None
    """What was allowed, in the figure's unit; None where only equality was."""


def in_unit(figure: Figure, measured: Any) -> Any:
    """A measured value in the figure's unit, if it is a number."""
    if isinstance(measured, bool):
        return "yes" if measured else "no"
    if isinstance(measured, int | float):
        return measured / UNITS.get(figure.unit, 1)
    return measured


def allowed(figure: Figure) -> float | None:
    """The tolerance that holds for a figure, in its unit."""
    published = figure.published
    if figure.tolerance_kind == "rel":
        return figure.tolerance * abs(published)
    if figure.tolerance is None or figure.tolerance_kind == "exact":
        deep = figure.needs_weights and figure.unit in ("rank", "count") and isinstance(published, float)
        return DEEP_SHARE * published if deep and published >= DEEP else None
    if figure.tolerance_kind == "abs" and figure.needs_weights and figure.tolerance < SIX_DIGITS:
        return max(figure.tolerance, FLOAT_NOISE * max(1.0, abs(published)))
    return figure.tolerance


def judge(figure: Figure, measured: Any) -> Verdict:
    """Whether `measured`, in the figure's unit, is what was published. A text is held against the text as printed."""
    published, tolerance = figure.value if isinstance(measured, str) else figure.published, allowed(figure)
    match figure.tolerance_kind:
        case "at_least":
            return Verdict(number(measured) and measured >= published - (tolerance or 0), tolerance)
        case "at_most":
            return Verdict(number(measured) and measured <= published + (tolerance or 0), tolerance)
    return Verdict(close(plain(published), plain(measured), tolerance), tolerance)


def close(published: Any, measured: Any, tolerance: float | None) -> bool:
    if isinstance(published, list) and isinstance(measured, list):
        return len(published) == len(measured) and all(map(lambda a, b: close(a, b, tolerance), published, measured))
    if number(published) and number(measured):
        slack = EXACT * max(abs(published), 1.0)
        return abs(published - measured) <= (tolerance or 0) + slack
    return published == measured


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """Tuples as lists, so that a shape is a shape."""
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def shown(value: Any) -> str:
    """A measured value as the table holds it: lists in JSON, numbers with as many digits as float32 has."""
    value = plain(value)
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if number(value):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.7g}"
    return str(value)
