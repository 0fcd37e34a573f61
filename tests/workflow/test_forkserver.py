"""Scripts run in forks of one process: the same tables, logs and failures as in processes of their own."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tokentrail import forkserver, stage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux only"),
]

LENS = "results/tiny/alpha/lens.parquet"
# What runs the model, changes it, rewrites its weights, and reads text alone.
UNTIMED = [f"results/tiny/alpha/{stage}.parquet" for stage in ("lens", "patching", "quantization_quality", "merges")]


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


def test_tables_and_logs_are_those_of_a_run_without_it(done, monkeypatch):
    paths = [done.path / table for table in UNTIMED]
    logs = [done.path / "logs" / "tiny" / "alpha" / f"{path.stem}.log" for path in paths]
    forked = [path.read_bytes() for path in [*paths, *logs]]
    monkeypatch.setenv("TOKENTRAIL_FORKSERVER", "0")
    before = [path.stat().st_mtime_ns for path in paths]
    done.run(*UNTIMED, "--forcerun", *UNTIMED)
    assert all(path.stat().st_mtime_ns > made for path, made in zip(paths, before, strict=True))
    assert [path.read_bytes() for path in [*paths, *logs]] == forked


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


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_only_what_the_system_kills_is_said_to_be_out_of_memory(tmp_path, capsys, ended_by):
    log = tmp_path / "job.log"
    assert stage.tell_killed("lens of alpha", ended_by, log) == 128 + ended_by
    said = capsys.readouterr().err
    assert said == log.read_text() and said.startswith(f"lens of alpha: ended by {ended_by.name}")
    assert ("memory" in said) == (ended_by == signal.SIGKILL)


@pytest.mark.parametrize(
    "address",
    ["", f"tokentrail-nobody {sys.prefix}", "tokentrail-nobody /another/environment"],
    ids=["none", "gone", "of another environment"],
)
def test_without_a_server_of_its_own_a_script_runs_where_it_is(monkeypatch, address):
    monkeypatch.setenv(forkserver.ADDRESS, address)
    assert forkserver.run_elsewhere() is None


def test_a_server_of_another_environment_is_not_asked(monkeypatch):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0tokentrail-of-a-test")
        listener.listen()
        listener.settimeout(0.2)
        monkeypatch.setenv(forkserver.ADDRESS, "tokentrail-of-a-test /another/environment")
        assert forkserver.run_elsewhere() is None
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_fault_in_a_fork_is_in_the_log_as_in_a_process_of_its_own(done, monkeypatch):
    """A fault of the program, with its traceback up to the script's own line."""
    done.edit("scripts/lens.py", "    loaded =", "    raise RuntimeError('planted')\n    loaded =")
    log = done.path / "logs" / "tiny" / "alpha" / "lens.log"
    said = []
    for switch in ("1", "0"):
        monkeypatch.setenv(forkserver.SWITCH, switch)
        status, _ = done.snakemake(LENS)
        assert status == 1 and not (done.path / LENS).exists()
        text = log.read_text()
        said.append(text[text.rindex("in main\n") :])
    assert said[0] == said[1] and said[0].rstrip().endswith("RuntimeError: planted")
