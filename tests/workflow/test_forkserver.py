"""Scripts run in forks of one process: the same tables, logs and failures as in processes of their own."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux only"),
]

LENS = "results/tiny/alpha/lens.parquet"


def processes(words: str) -> dict[int, str]:
    """The command lines that hold `words`, by process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in line:
            found[int(folder.name)] = line
    return found


def children(parent: int, words: str = "") -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if words in line]


def wait_until(condition, seconds: float = 60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def slowed(checkout) -> None:
    """Have the script of `lens` say where it runs, and wait."""
    checkout.edit(
        "scripts/lens.py",
        "    loaded =",
        "    import os, time; print('in', os.getpid(), flush=True); time.sleep(30)\n    loaded =",
    )


def running_fork(checkout) -> int:
    log = checkout.path / "logs" / "tiny" / "alpha" / "lens.log"

    def said() -> re.Match | None:
        with suppress(FileNotFoundError):  # snakemake removes the one of the run before
            return re.search(r"^in (\d+)$", log.read_text(), re.MULTILINE)

    return int(wait_until(said)[1])


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_tables_and_logs_are_those_of_a_run_without_it(done):
    forked = (done.path / LENS).read_bytes()
    log = done.path / "logs" / "tiny" / "alpha" / "lens.log"
    said = log.read_text()
    os.environ["TOKENTRAIL_FORKSERVER"] = "0"
    try:
        done.run(LENS, "--forcerun", LENS)
    finally:
        del os.environ["TOKENTRAIL_FORKSERVER"]
    assert (done.path / LENS).read_bytes() == forked and log.read_text() == said


@pytest.mark.parametrize("whom", ["fork", "server", "script", "run"])
def test_whoever_is_killed_nothing_is_left_running(done, whom):
    slowed(done)
    process = done.start(LENS)
    fork = running_fork(done)
    (server,) = children(process.pid, "tokentrail.forkserver")
    assert fork in children(server)
    (script,) = [each for each in processes(str(done.path)) if each in processes(".snakemake/scripts") and each != fork]
    os.kill({"fork": fork, "server": server, "script": script, "run": process.pid}[whom], signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    wait_until(lambda: not any(map(alive, (fork, server, script))))
    assert not (done.path / LENS).exists() and not list(done.results.rglob("*.part"))
    if whom in ("fork", "server"):
        assert "lens of alpha: ended by SIGKILL" in output
