"""How far a download is, in lines, so that jobs can share a console: done, total, rate, time left."""

from __future__ import annotations

import logging
import time

SECONDS_BETWEEN_LINES = 5.0
LARGE = 1_000_000
"""Bytes from which on the end of a download is told as well."""
LOG = logging.getLogger(__name__)


class Progress:
    """What the hub's client reports a file's bytes to: a line every few seconds, and one at the end of a large one.

    It has the part of tqdm's interface that the client uses. A bar that is drawn over itself would be unreadable
    where several jobs share a console.
    """

    def __init__(self, name: str, *, total: int | None = None, initial: int = 0, **_):
        self.name, self.total, self.initial, self.done = name, total, initial, initial
        self.began = self.told = time.monotonic()

    def update(self, count: int) -> None:
        """`count` more bytes have arrived; negative if bytes have to be fetched again."""
        self.done += count
        if time.monotonic() - self.told >= SECONDS_BETWEEN_LINES:
            self.tell()

    def tell(self) -> None:
        self.told = time.monotonic()
        LOG.info(line(self.name, self.done, self.total, self.done - self.initial, self.told - self.began))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_) -> None:
        if self.done - self.initial >= LARGE:
            self.tell()


def line(name: str, done: int, total: int | None, fetched: int, seconds: float) -> str:
    """For example `model.safetensors: 131 MB of 548 MB, 24.0 MB/s, 17 s left`."""
    rate = max(fetched, 0) / max(seconds, 1e-9)
    parts = [f"{size(done)} of {size(total)}" if total else size(done), f"{size(rate)}/s"]
    if total and 0 < done < total and rate:
        parts.append(f"{(total - done) / rate:.0f} s left")
    return f"{name}: {', '.join(parts)}"


def size(count: float) -> str:
    """Bytes in decimal units, three digits: `548 MB`, `1.19 GB`."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= 0.9995 * factor:
            return f"{count / factor:#.3g}".rstrip(".") + f" {unit}"
    return f"{count:.0f} B"
