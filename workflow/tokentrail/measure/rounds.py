"""Times taken in shuffled turns, so that a slow moment of the machine hits all cases alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import comb
from statistics import median
from typing import NamedTuple

from tokentrail.measure.limits import seconds

LEVEL = 0.95  # that an interval of a median reaches where there are rounds enough: six or more

Prepare = Callable[[], Callable[[], object]]
"""Sets a case up, which is not timed, and gives the call that is."""


class Median(NamedTuple):
    """The median of some rounds, and an interval that holds the median of all rounds that there could have been."""

    middle: float
    low: float
    high: float
    level: float
    """The probability with which it does, whatever the distribution of the times."""


def median_of(times: Sequence[float]) -> Median:
    """The median of one time or more, and the narrowest pair of order statistics that holds it with LEVEL.

    From the k-th fastest of n rounds to the k-th slowest it is held with 1 - 2 P(Bin(n, 1/2) < k) (David and Nagaraja,
    Order Statistics, 7.1). With fewer than six rounds no pair reaches LEVEL; then it is the fastest and the slowest.
    """
    n, k = len(times), 1
    while k < n - k and held(n, k + 1) >= LEVEL:
        k += 1
    ordered = sorted(times)
    return Median(median(ordered), ordered[k - 1], ordered[n - k], held(n, k))


def held(n: int, k: int) -> float:
    """The probability that the k-th smallest and the k-th largest of n have the median between them."""
    return 1 - 2 * sum(comb(n, below) for below in range(k)) / 2**n


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
