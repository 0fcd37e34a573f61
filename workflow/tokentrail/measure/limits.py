"""What this machine can do at best, measured in the process that quotes it."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

MATRIX = 2048  # rows and columns: large enough for the processor to reach its peak
ARRAY = 1 << 30  # bytes: far more than any cache of a processor


def matrix_product(device: torch.device | str = "cpu") -> tuple[Callable[[], object], int]:
    """A large float32 matrix product, and the operations that it takes."""
    a, b = torch.randn(MATRIX, MATRIX, device=device), torch.randn(MATRIX, MATRIX, device=device)
    return lambda: a @ b, 2 * MATRIX**3


def array_read(device: torch.device | str = "cpu") -> tuple[Callable[[], object], int]:
    """The sum of a large float32 array, and the bytes that it reads."""
    x = torch.ones(ARRAY // 4, device=device)
    return x.sum, ARRAY


def matrix_peak(rounds: int = 15) -> float:
    """float32 operations per second of a large matrix product: the best of the rounds."""
    run, operations = matrix_product()
    return operations / best(run, rounds)


def read_bandwidth(rounds: int = 15) -> float:
    """Bytes per second of reading a large array: the best of the rounds."""
    run, size = array_read()
    return size / best(run, rounds)


def best(run: Callable[[], object], rounds: int) -> float:
    """The shortest wall time of `rounds` calls, after one that is not counted."""
    run()
    return min(seconds(run) for _ in range(rounds))


def seconds(run: Callable[[], object], device: torch.device | str = "cpu") -> float:
    """Wall time of one call; on a GPU, until the device has done all of it."""
    wait = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - start
