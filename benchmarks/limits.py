"""What this machine can do at best, measured in the process that quotes it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch


def seconds(run: Callable[[], object], rounds: int) -> list[float]:
    """Wall times of `rounds` calls, after one that is not counted."""
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def matrix_peak(size: int = 2048, rounds: int = 15) -> float:
    """float32 operations per second of a large square matrix product: the best of the rounds."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / min(seconds(lambda: a @ b, rounds))


def read_bandwidth(megabytes: int = 1024, rounds: int = 15) -> float:
    """Bytes per second of summing an array far larger than any cache: the best of the rounds."""
    x = torch.ones(megabytes * 2**18)
    return x.numel() * 4 / min(seconds(x.sum, rounds))


def interleaved(cases: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each case in each round, measured in turns, so that a slow moment of the machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for run in cases.values():
        run()
    for turn in range(rounds):
        for name in list(cases)[turn % len(cases) :] + list(cases)[: turn % len(cases)]:
            start = time.perf_counter()
            cases[name]()
            times[name].append(time.perf_counter() - start)
    return times


def ratio(slower: list[float], faster: list[float]) -> float:
    """Median over the rounds of how much longer one case took than the other in the same round.

    A machine that drifts from round to round moves the medians of the two apart, but hardly their ratio in a round.
    """
    return statistics.median(a / b for a, b in zip(slower, faster, strict=True))
