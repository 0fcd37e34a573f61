"""Times taken in shuffled turns, so that a slow moment of the machine hits all cases alike."""

from __future__ import annotations

import random
from collections.abc import Callable

from tokentrail.measure.limits import seconds

Prepare = Callable[[], Callable[[], object]]
"""Sets a case up, which is not timed, and gives the call that is."""


def shuffled(cases: dict[str, Prepare], rounds: int, seed: int) -> dict[str, list[float]]:
    """Seconds of each case in each round; a first run of each, in order, is not counted."""
    for prepare in cases.values():
        prepare()()
    order = random.Random(seed)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name in order.sample(list(cases), len(cases)):
            times[name].append(seconds(cases[name]()))
    return times
