"""The median of a few times, and how surely they hold it."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median
from typing import NamedTuple

LEVEL = 0.95  # that an interval of a median reaches where there are rounds enough: six or more


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
