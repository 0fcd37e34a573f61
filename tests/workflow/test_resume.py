"""A run that is killed goes on with the same command, and its tables are those of an undisturbed run."""

import os
import signal
import time

import polars as pl
import pytest

pytestmark = pytest.mark.slow


def only_alpha(config) -> None:
    del config["models"]["beta"]


def wait_for(process, condition, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.02)


def alpha(tables: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in tables.items() if name.startswith("alpha/")}


def test_killed_at_several_moments(fresh, undisturbed):
    fresh.configure(only_alpha)
    folder = fresh.results / "alpha"

    def killed_when(condition, group: bool = True) -> None:
        process = fresh.start()
        wait_for(process, condition)
        if group:
            fresh.kill(process)
        else:
            process.send_signal(signal.SIGKILL)  # its scripts live on and write while the next run starts
        for path in fresh.results.rglob("*.parquet"):
            pl.read_parquet(path)

    killed_when(lambda: (fresh.path / "logs" / "tiny" / "alpha" / "weights.log").exists())
    killed_when((folder / "weights.parquet").exists)
    killed_when((folder / "parity.parquet").exists)
    killed_when((folder / "parity.passed").exists, group=False)
    killed_when(lambda: len(list(folder.glob("*.parquet"))) >= 10)
    killed_when(lambda: any((fresh.results / "charts").glob("*.svg")))

    output = fresh.run()
    assert "Nothing to be done" not in output
    assert alpha(fresh.tables()) == alpha(undisturbed.tables())
    assert not list(fresh.results.rglob("*.part")) and not list(fresh.results.rglob(".*.part"))
    assert "Nothing to be done" in fresh.run()


def test_second_run_in_the_same_results_is_refused(done):
    done.configure(only_alpha)
    first = done.start("--forcerun", "residual")
    try:
        wait_for(first, lambda: (done.results / ".lock").exists() and held_by(done) == first.pid)
        status, output = done.snakemake("--forcerun", "residual")
        assert status == 1
        assert f"another run (process {first.pid}) is writing to results/tiny" in output
        assert "Traceback" not in output
        assert done.snakemake("--dry-run")[0] == 0, "looking is allowed"
    finally:
        done.kill(first)
    assert done.snakemake("--forcerun", "cells", "--until", "cells")[0] == 0, "a killed run leaves no lock behind"


def held_by(checkout) -> int:
    return int((checkout.results / ".lock").read_text() or 0)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux only")
def test_threads_are_held_to_the_cores(undisturbed):
    log = (undisturbed.path / "logs" / "tiny" / "alpha" / "lens.log").read_text()
    assert f"{min(2, len(os.sched_getaffinity(0)))} threads" in log
