"""What the times were taken on: processor, memory, versions, threads, and the measured limits."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import polars as pl
import torch

from tokentrail.stages.timing.timing_summary import best


def measure(timing: pl.DataFrame, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `machine`; the limits are those that the process of `timing` measured."""
    limits = timing.filter(pl.col("implementation") == "machine")
    facts = {
        "processor": processor(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory_bytes() / 2**30:.1f} GiB",
        "threads": str(timing["threads"][0]),
        "idle threads": os.environ.get("OMP_WAIT_POLICY", "as the library sets it"),
        "device": settings["device"],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "matrix library": matrix_library(),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
        "float32 matrix peak": f"{best(limits, 'matrix_peak', 'operations') / 1e9:.1f} GFLOP/s",
        "read bandwidth": f"{best(limits, 'read_bandwidth', 'least_bytes') / 1e9:.1f} GB/s",
    }
    if settings["device"] != "cpu":
        facts["accelerator"] = torch.cuda.get_device_name(settings["device"])
    return pl.DataFrame(
        {"model": settings["model"], "fact": list(facts), "value": list(facts.values())},
    )


def processor() -> str:
    """The processor's name, as the system gives it."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), flags=re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or "unknown"


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def matrix_library() -> str:
    """The library behind torch's matrix products, and whether oneDNN is there beside it."""
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    name = blas[1] if blas else "unknown"
    return f"{name}, oneDNN" if torch.backends.mkldnn.is_available() else name
