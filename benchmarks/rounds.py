"""Times taken in turns, so that a slow moment of the machine hits all cases alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from tokentrail.measure.limits import seconds


def interleaved(cases: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each case."""
    return prepared({name: lambda run=run: run for name, run in cases.items()}, rounds)


def prepared(cases: dict[str, Callable[[], Callable[[], object]]], rounds: int) -> dict[str, float]:
    """Median seconds of what each case gives to be timed; giving it is not timed, and the first round not counted."""
    names, times = list(cases), {name: [] for name in cases}
    for turn in range(rounds + 1):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(seconds(cases[name]()))
    return {name: statistics.median(found[1:]) for name, found in times.items()}
