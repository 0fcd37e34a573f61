"""From a source in the configuration to files in the cache, and the weights table that lists them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from tokentrail.weights import blobs, gguf, inspection, lock, model_config, tokenizer_classes
from tokentrail.weights.blobs import Blob
from tokentrail.weights.layout import Fetched
from tokentrail.weights.lock import Pins
from tokentrail.weights.sources import Source, source_of


def fetch(
    model: str, settings: dict[str, Any], license: str, lock_file: Path, changes: dict[str, Any] | None = None
) -> pl.DataFrame:
    """Get a model's files, check them, and list them as the table `weights`.

    `settings` are a source of the configuration as a dict, `license` the configured license or "" for the one
    that the source states. `changes` are merged into the model's config.json. Files whose hashes are pinned or
    recorded and that are cached already need no network. Unpinned files are recorded in `lock_file`. Raises
    WeightsError for whatever is missing, damaged, refused or not what was pinned; then nothing is recorded, and
    nothing half-written is left.
    """
    source, lock_file = source_of(settings), Path(lock_file)
    pins = lock.pins(source, lock_file)
    with blobs.lock(pins.key):
        fetched = _cached(source, pins) or source.fetch(pins)
        pins.check_used({blob.name for blob in fetched.files})
        stored, derived = {}, []
        stated = fetched.license
        for blob in fetched.files:
            if blob.name.endswith(".safetensors"):
                stored[blob.name] = inspection.dtypes(blob)
        if ggufs := [blob for blob in fetched.files if blob.name.endswith(".gguf")]:
            derived, found = gguf.convert(ggufs)
            stored |= {blob.name: found["dtypes"] for blob in ggufs}
            # What is said of the file itself is nearer than what is said of what it came in.
            stated = found["license"] or stated
        derived += merged_vocabulary({blob.name: blob for blob in fetched.files}, source.shown)
        if changes:
            derived = with_changes([*fetched.files, *derived], derived, changes)
        stored |= {blob.name: inspection.dtypes(blob) for blob in derived if blob.name.endswith(".safetensors")}
        lock.hold(source, lock_file, fetched.files)
        _remember(source, pins, fetched)

    def row(blob: Blob, role: str, pinned: str) -> dict[str, Any]:
        return {
            "model": model,
            "file": blob.name,
            "bytes": blob.bytes,
            "sha256": blob.sha256,
            "role": role,
            "source_kind": source.kind,
            "source": source.shown,
            "revision": fetched.revision,
            "license": license or stated,
            "stored_dtype": ", ".join(stored.get(blob.name, [])),
            "pinned": pinned,
            "changes": json.dumps(changes) if changes and (blob.name, role) == ("config.json", "derived") else "",
        }

    by_name = {"key": lambda blob: blob.name}
    sources = sorted(fetched.files, **by_name)
    rows = [row(blob, "source", "config" if blob.name in pins.configured else "lock") for blob in sources]
    return pl.DataFrame(rows + [row(blob, "derived", "derived") for blob in sorted(derived, **by_name)])


def merged_vocabulary(files: dict[str, Blob], where: str) -> list[Blob]:
    """The tokenizer.json that vocab.json and merges.txt stand for; none if there is one already, or none to make."""
    if "tokenizer.json" in files or "vocab.json" not in files:
        return []
    made = tokenizer_classes.from_vocabulary({name: blob.path for name, blob in files.items()}, where)
    with blobs.disk_errors("tokenizer.json"), blobs.staging() as folder:
        (folder / "tokenizer.json").write_text(made, encoding="utf-8")
        return [blobs.store(folder / "tokenizer.json", "tokenizer.json", how="move")]


def with_changes(files: list[Blob], derived: list[Blob], changes: dict[str, Any]) -> list[Blob]:
    """The derived files, with the last config.json of `files` changed as one of them."""
    stated = next(blob for blob in reversed(files) if blob.name == "config.json")
    config = model_config.changed(model_config.read(stated.path), changes)
    with blobs.disk_errors(stated.name), blobs.staging() as folder:
        part = folder / stated.name
        part.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        blob = blobs.store(part, stated.name, how="move")
    return [*(each for each in derived if each.name != blob.name), blob]


def _cached(source: Source, pins: Pins) -> Fetched | None:
    """What the source gave last time, if every file of it is vouched for and cached: no network is needed."""
    if not source.fixed:
        return None
    known = blobs.recall(_record_key(source, pins))
    files = known.get("files", {})
    if not files or any(pins.of(name) != sha256 for name, sha256 in files.items()):
        return None
    found = [blobs.find(name, sha256) for name, sha256 in files.items()]
    return None if None in found else Fetched(found, known["revision"], known["license"])


def _remember(source: Source, pins: Pins, fetched: Fetched) -> None:
    if not source.fixed:
        return
    files = {blob.name: blob.sha256 for blob in fetched.files}
    value = {"files": files, "revision": fetched.revision, "license": fetched.license}
    blobs.remember(_record_key(source, pins), value)


def _record_key(source: Source, pins: Pins) -> str:
    return f"{pins.key} file {source.file}"
