"""The shared cache of weights, addressed by content.

    <root>/blobs/<sha256>/<file name>          the file, read-only, put there whole by a rename
    <root>/blobs/<sha256>/.<file name>.json    its size and mtime when it was verified, and facts found in it
    <root>/records/<sha256 of a key>.json      what a source or a conversion gave last time
    <root>/locks, <root>/staging               locks, and files that are not whole yet

`<root>` is $TOKENTRAIL_CACHE, or the user's cache folder. Several processes may use one cache at once.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokentrail.errors import WeightsError

CHUNK = 1 << 20
REMEDY = "snakemake --cores 4 --forcerun weights"


@dataclass(frozen=True)
class Blob:
    """A file in the cache whose content has the hash that it is named by."""

    name: str
    sha256: str
    bytes: int
    path: Path


def root() -> Path:
    """The folder of the cache."""
    chosen = os.environ.get("TOKENTRAIL_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("tokentrail")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find(name: str, sha256: str) -> Blob | None:
    """The cached file, or None if it is not in the cache.

    Size and mtime are compared with those noted when it was verified; if they differ, it is hashed again.
    Raises WeightsError if the content is no longer what the hash says.
    """
    path = _blob_path(name, sha256)
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    record = _read_json(_record_of(path))
    if (record.get("bytes"), record.get("mtime_ns")) != (stat.st_size, stat.st_mtime_ns):
        found = sha256_of(path)
        if found != sha256:
            raise WeightsError(
                f"{path} was changed after it was cached: its SHA-256 should be {sha256} and is {found}; "
                f"delete that file and run `{REMEDY}`"
            )
        # A cache shared by another user may be read-only: then the next opening hashes again.
        with contextlib.suppress(PermissionError):
            _write_record(path, record.get("facts"))
    return Blob(name, sha256, stat.st_size, path)


def store(
    source: Path,
    name: str,
    how: Literal["copy", "link", "move"] = "copy",
    check: Callable[[str, str], None] | None = None,
) -> Blob:
    """Put `source` into the cache under `name`, whole or not at all, and return it with its hash.

    The file is hashed in the one pass that copies it. `link` makes a hard link where the file system allows
    it and copies elsewhere; `move` is for files in `staging`. `check(name, sha256)` may raise to keep the
    file out. Raises WeightsError if the disk is full or the cache cannot be written.
    """
    if not name or name != Path(name).name or name.startswith("."):
        raise WeightsError(f"{name!r} is not a plain file name, so it is not stored; rename the file")
    with disk_errors(name), staging() as folder:
        part = folder / name
        sha256 = _take(source.resolve(), part, how)
        if check:
            check(name, sha256)
        part.chmod(0o444)
        final = _blob_path(name, sha256)
        with lock(sha256):
            final.parent.mkdir(parents=True, exist_ok=True)
            try:
                present = find(name, sha256)
            except WeightsError:
                present = None
            if present is None:
                part.replace(final)
                _write_record(final, None)
        return Blob(name, sha256, final.stat().st_size, final)


def _take(source: Path, part: Path, how: str) -> str:
    if how == "move":
        source.replace(part)
        return sha256_of(part)
    if how == "link" and _linked(source, part):
        return sha256_of(part)
    size = source.stat().st_size
    if shutil.disk_usage(part.parent).free < size:
        raise OSError(errno.ENOSPC, f"{size} bytes do not fit")
    digest = hashlib.sha256()
    with source.open("rb") as reader, part.open("wb") as writer:
        while chunk := reader.read(CHUNK):
            digest.update(chunk)
            writer.write(chunk)
    return digest.hexdigest()


def _linked(source: Path, part: Path) -> bool:
    try:
        os.link(source, part)
    except OSError:  # another file system, or one without hard links
        return False
    return True


@contextlib.contextmanager
def staging() -> Iterator[Path]:
    """A folder on the cache's file system that is removed when the block ends.

    Folders left by killed processes are removed first: nobody holds their lock any more.
    """
    from filelock import FileLock, Timeout

    base = root() / "staging"
    with disk_errors("a temporary folder"):
        base.mkdir(parents=True, exist_ok=True)
        for folder in base.iterdir():
            if folder.is_dir():
                with contextlib.suppress(Timeout), FileLock(base / f"{folder.name}.lock", timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
                    (base / f"{folder.name}.lock").unlink(missing_ok=True)
        folder = base / uuid.uuid4().hex
        guard = FileLock(base / f"{folder.name}.lock")
        guard.acquire()
    try:
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        guard.release()
        (base / f"{folder.name}.lock").unlink(missing_ok=True)


def lock(key: str):
    """A lock, held by one process at a time, on anything that `key` names; use it in a `with` block."""
    from filelock import FileLock

    folder = root() / "locks"
    with disk_errors("a lock"):
        folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.lock")


@contextlib.contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Turns a full disk or a cache that cannot be written into WeightsError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise WeightsError(disk_full(what)) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR):
            raise WeightsError(
                f"{what} cannot be written to the weights cache {root()} ({error.strerror}); set "
                "TOKENTRAIL_CACHE to a folder that you can write to"
            ) from error
        raise


def disk_full(what: str) -> str:
    """The sentence for a disk that has no room for `what`."""
    return (
        f"the disk of the weights cache {root()} has no room for {what}; free some space, or set "
        "TOKENTRAIL_CACHE to a folder on a larger disk"
    )


def facts(blob: Blob) -> dict[str, Any] | None:
    """What an inspection noted about the file, or None if it was not inspected since it was stored."""
    return _read_json(_record_of(blob.path)).get("facts")


def note(blob: Blob, found: dict[str, Any]) -> None:
    """Note facts about a file, so that it is not inspected again."""
    with lock(blob.sha256), contextlib.suppress(PermissionError):
        _write_record(blob.path, found)


def remember(key: str, value: dict[str, Any]) -> None:
    """Note what `key` (a source, or a conversion) gave."""
    with disk_errors("a record"):
        _write_json(_key_path(key), value)


def recall(key: str) -> dict[str, Any]:
    """What `remember` noted for `key`, or an empty dict."""
    return _read_json(_key_path(key))


def _key_path(key: str) -> Path:
    return root() / "records" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def _blob_path(name: str, sha256: str) -> Path:
    return root() / "blobs" / sha256 / name


def _record_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.json")


def _write_record(path: Path, found: dict[str, Any] | None) -> None:
    stat = path.stat()
    _write_json(_record_of(path), {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns, "facts": found})


def _read_json(path: Path) -> dict[str, Any]:
    """A record, or an empty dict if there is none or it is damaged: records can always be made again."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        part.write_text(json.dumps(value, indent=1, sort_keys=True), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
