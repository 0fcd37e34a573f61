"""Trust on first use: hashes of unpinned files, recorded once and held since.

The lock file is JSON, `{"<kind>:<source>@<revision>": {"<file>": {"sha256": ..., "bytes": ...}}}`, sorted, so
that it can be committed with a paper. A hash in the configuration takes precedence over a recorded one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokentrail.errors import WeightsError
from tokentrail.tables import atomic_path
from tokentrail.weights import blobs
from tokentrail.weights.blobs import Blob
from tokentrail.weights.sources import Source

Entry = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Pins:
    """The hashes that a source's files are held to."""

    key: str
    configured: dict[str, str]
    recorded: dict[str, str]
    lock_file: Path

    def of(self, name: str) -> str | None:
        """The hash that the file must have, or None if it is seen for the first time."""
        return self.configured.get(name) or self.recorded.get(name)

    def check(self, name: str, found: str) -> None:
        """Raises WeightsError if the file has another hash than the pinned or the recorded one."""
        expected = self.of(name)
        if expected in (None, found):
            return
        if name in self.configured:
            raise WeightsError(
                f"{name} of {self.key} has the SHA-256 {found}, but the configuration pins {expected} under "
                f"source.sha256; fetch the file that was pinned, or correct the pin if the new file is meant"
            )
        raise WeightsError(
            f"{name} of {self.key} has the SHA-256 {found}, but {self.lock_file} recorded {expected} on "
            f"first use; restore that file, or delete the entry {self.key!r} there if the new one is meant"
        )

    def check_used(self, names: set[str]) -> None:
        """Raises WeightsError if the configuration pins a file that the source does not use: a misspelt
        name.
        """
        if unused := sorted(set(self.configured) - names):
            raise WeightsError(
                f"source.sha256 of {self.key} pins {', '.join(unused)}, but the files used are "
                f"{', '.join(sorted(names))}; correct the name or remove the pin"
            )


def pins(source: Source, lock_file: Path) -> Pins:
    """The pins of a source, from the configuration and the lock file.

    Raises WeightsError if the lock file is damaged.
    """
    recorded = {name: entry["sha256"] for name, entry in _read(lock_file).get(source.key, {}).items()}
    return Pins(source.key, source.sha256, recorded, lock_file)


def hold(source: Source, lock_file: Path, files: list[Blob]) -> None:
    """Check the files against the lock file as it is now, and record those that neither it nor a pin names.

    Raises WeightsError if a file differs from what is recorded, or if the lock file is damaged.
    """
    # The lock is kept in the cache, so that no stray file stands beside a file that is committed.
    with blobs.lock(f"lock file {lock_file.absolute()}"):
        held = pins(source, lock_file)
        new: Entry = {}
        for blob in files:
            held.check(blob.name, blob.sha256)
            if held.of(blob.name) is None:
                new[blob.name] = {"sha256": blob.sha256, "bytes": blob.bytes}
        if not new:
            return
        everything = _read(lock_file)
        everything[held.key] = everything.get(held.key, {}) | new
        with atomic_path(lock_file) as part:
            part.write_text(json.dumps(everything, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _read(lock_file: Path) -> dict[str, Entry]:
    try:
        raw = json.loads(lock_file.read_text(encoding="utf-8-sig"))
        if not all(isinstance(entry["sha256"], str) for files in raw.values() for entry in files.values()):
            raise TypeError
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise WeightsError(
            f"the lock file {lock_file} is not valid; restore it from version control, or delete it to "
            "record the hashes anew"
        ) from None
    return raw
