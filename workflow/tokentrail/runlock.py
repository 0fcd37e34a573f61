"""One run at a time in a results folder, and no lock left behind by a run that was killed."""

import os
from pathlib import Path

from tokentrail.errors import TokentrailError

_held: list[int] = []


class BusyError(TokentrailError):
    """Another run is writing to the same results folder."""


def held() -> tuple[int, ...]:
    """The files that hold folders for this process; a process that inherits one holds its folder as well."""
    return tuple(_held)


def hold(folder: Path) -> None:
    """Hold the folder until this process ends, however it ends. Raises BusyError if another process holds it.

    The kernel drops the lock with the process, so a killed run needs no unlocking. Scripts that it started do
    not inherit the lock.
    """
    try:
        import fcntl
    except ImportError:  # no fcntl on Windows
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(handle, 32).decode().strip() or "unknown"
        os.close(handle)
        raise BusyError(
            f"another run (process {holder}) is writing to {folder}; wait for it, stop it, or give this run "
            "another name with the key run"
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    _held.append(handle)
