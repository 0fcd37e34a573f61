"""Times taken in turns, so that a slow moment of the machine hits all cases alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from tokentrail.measure.limits import seconds


def interleaved(cases: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each case in each round."""
    return prepared({name: lambda run=run: run for name, run in cases.items()}, rounds)


def prepared(cases: dict[str, Callable[[], Callable[[], object]]], rounds: int) -> dict[str, list[float]]:
    """Seconds of what each case gives to be timed; giving it is not timed, and the first round not counted."""
    names, times = list(cases), {name: [] for name in cases}
    for turn in range(rounds + 1):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(seconds(cases[name]()))
    return {name: found[1:] for name, found in times.items()}


def ratio(slower: list[float], faster: list[float]) -> float:
    """Median over the rounds of how much longer one case took than the other in the same round.

    A machine that drifts from round to round moves the medians of the two apart, but hardly their ratio in a round.
    """
    return statistics.median(a / b for a, b in zip(slower, faster, strict=True))


def verdict(found: dict[str, list[float]]) -> str:
    """Ours against the faster of transformers' two paths."""
    eager, sdpa = (ratio(found[name], found["ours"]) for name in ("eager", "sdpa"))
    return f"ratio {min(eager, sdpa):5.2f}   (eager {eager:.2f}, sdpa {sdpa:.2f})"
