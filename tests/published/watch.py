"""How long the jobs of a run take and how much memory they hold, by stage, seen from outside."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field

import psutil

SCRIPT = re.compile(r"tmp\w+\.(\w+)\.py$")
GIB = 2**30


@dataclass
class Watch:
    """Looks at a process and all that it starts, twice a second, until `stop`."""

    root: int
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each stage, its jobs for all models together."""
    peaks: dict[str, float] = field(default_factory=dict)
    """Largest memory of any job of a stage, in GiB."""
    peak: float = 0.0
    """Largest memory of all jobs at once, in GiB."""

    def __post_init__(self):
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _look(self) -> None:
        before = time.monotonic()
        while not self._stopped.wait(0.5):
            now = time.monotonic()
            self._note(now - before)
            before = now

    def _note(self, passed: float) -> None:
        total = 0.0
        try:
            processes = psutil.Process(self.root).children(recursive=True)
        except psutil.NoSuchProcess:
            return
        for process in processes:
            try:
                memory, command = process.memory_info().rss / GIB, process.cmdline()
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
            total += memory
            found = next(filter(None, map(SCRIPT.search, command)), None)
            if found and "python" in command[0]:
                stage = found[1]
                self.seconds[stage] = self.seconds.get(stage, 0.0) + passed
                self.peaks[stage] = max(self.peaks.get(stage, 0.0), memory)
        self.peak = max(self.peak, total)

    def lines(self) -> list[str]:
        """A line for each stage, the longest first."""
        order = sorted(self.seconds, key=self.seconds.get, reverse=True)
        return [f"{stage:24} {self.seconds[stage]:7.0f} s {self.peaks[stage]:6.2f} GiB" for stage in order]
