"""What every stage script shares: its inputs, its log, its threads, and an output that is whole or absent.

A script has one `main(job)`. Snakemake calls it through `run_job`; `by_hand.run` calls it from a shell.
"""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokentrail import forkserver
from tokentrail.allocator import keep_freed
from tokentrail.errors import TokentrailError

if TYPE_CHECKING:
    import polars as pl

# Idle threads sleep rather than spin: spinning, two jobs that share cores slow each other down tenfold. It must be
# set before torch is loaded, so scripts import this module first, and what takes long in `main` (see `forkserver`).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


CHART_KINDS = ("html", "svg", "png", "json")


@dataclass(frozen=True)
class Job:
    """One stage of one model, or one that spans models."""

    stage: str
    """Name of the stage, which is the name of its table."""
    settings: dict[str, Any]
    """The entries of the configuration that the stage uses."""
    inputs: Callable[[str], list[Path]]
    """Files of an input, by its name: one, or one for each model if the stage spans models."""
    outputs: list[Path]
    """Files to write."""
    threads: int = 1

    def table(self, name: str) -> "pl.DataFrame":
        """An input table; for a stage that spans models, the rows of all of them, in the models' order."""
        import polars as pl

        from tokentrail import tables

        return pl.concat([tables.read(name, path) for path in self.inputs(name)])

    def refused(self, name: str) -> list[dict[str, str]]:
        """What was asked and not measured in an input table, as `tables.refused`."""
        from tokentrail import tables

        return [row for path in self.inputs(name) for row in tables.refused(name, path)]

    def weights_sha256(self, name: str) -> str:
        """Hash of the weights that an input table was measured on."""
        import polars as pl

        return pl.read_parquet_metadata(self.inputs(name)[0]).get("weights_sha256", "")

    def write(self, frame: "pl.DataFrame", weights_sha256: str) -> None:
        """The stage's table, checked against its schema."""
        from tokentrail import tables

        check_still_wanted()
        tables.write(self.stage, frame, self.outputs[0], weights_sha256)
        print(f"{self.stage}: {frame.height} rows written to {self.outputs[0]}")

    def write_text(self, text: str) -> None:
        """The stage's output, if it is no table."""
        from tokentrail import tables

        check_still_wanted()
        with tables.atomic_path(self.outputs[0]) as part:
            part.write_text(text, encoding="utf-8")
        print(f"{self.stage}: {self.outputs[0]} written")


def run_job(main: Callable[[Job], None], snakemake: Any) -> None:
    """Run `main` as a job of the workflow, in a fork if there is a server; everything it prints goes to the job's log.

    What is timed gets a process of its own, as it is when run by hand.
    """
    given = snakemake.params.job
    log = Path(snakemake.log[0])
    status = None if given.get("timed") else forkserver.run_elsewhere()
    if status is not None:
        sys.exit(status if status >= 0 else tell_killed(named(given["stage"], given["settings"]), -status, log))
    declared = {name: [files] if isinstance(files, str) else list(files) for name, files in snakemake.input.items()}

    def inputs(name: str) -> list[Path]:
        if name not in declared:
            raise KeyError(f"rule {snakemake.rule} does not declare the input {name!r} that its script reads")
        return [Path(file) for file in declared[name]]

    job = Job(
        stage=given["stage"],
        settings=given["settings"],
        inputs=inputs,
        outputs=[Path(file) for file in snakemake.output],
        threads=snakemake.threads,
    )
    sys.exit(call(main, job, redirect(log)))


def named(stage: str, settings: dict[str, Any]) -> str:
    return f"{stage} of {settings['model']}" if "model" in settings else stage


def tell_killed(who: str, number: int, log: Path) -> int:
    """Say which signal ended a job, on stderr and in its log, and return the exit status that a shell gives it."""
    sentence = f"{who}: ended by {signal.Signals(number).name}"
    if number == signal.SIGKILL:
        sentence += ", as the system ends what is out of memory"
    print(sentence, file=sys.stderr, flush=True)
    with log.open("a", encoding="utf-8") as file:
        print(sentence, file=file)
    return 128 + number


def call(main: Callable[[Job], None], job: Job, console: Any = None) -> int:
    """Run `main`, return its exit status; a user's mistake is one sentence on stderr and on `console`.

    What the library logs, such as the progress of a download, goes to both as well.
    """
    use_threads(job.threads)
    keep_freed()
    who = named(job.stage, job.settings)
    streams = list(filter(None, (sys.stderr, console)))
    show_log(who, streams)
    try:
        main(job)
    except TokentrailError as error:
        if os.environ.get("TOKENTRAIL_TRACEBACK") == "1":
            traceback.print_exc()
        for stream in streams:
            print(f"{who}: {error}", file=stream, flush=True)
        return 1
    return 0


def show_log(who: str, streams: list[Any]) -> None:
    """Show what the library logs on these streams, and whose it is."""
    log = logging.getLogger("tokentrail")
    log.setLevel(logging.INFO)
    log.handlers = [logging.StreamHandler(stream) for stream in streams]
    for handler in log.handlers:
        handler.setFormatter(logging.Formatter("{who}: {message}", style="{", defaults={"who": who}))


def check_still_wanted() -> None:
    """Raises TokentrailError if the run that started this job was killed.

    A script outlives a killed snakemake. The run that follows may have other settings, and must not have its
    tables overwritten by a job of the run before.
    """
    try:
        os.kill(int(os.environ.get("TOKENTRAIL_RUN", os.getpid())), 0)
    except PermissionError:
        return
    except ProcessLookupError:
        raise TokentrailError("the run that started this job has ended, so nothing is written; run it again") from None


def use_threads(threads: int) -> None:
    """Hold torch, whether it is loaded or will be, to the job's threads and the cores that this process may run on.

    Snakemake's own limit, OMP_NUM_THREADS, can exceed the machine's cores, and that slows torch down.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    used = max(1, min(threads, available))
    os.environ.update(OMP_NUM_THREADS=str(used), MKL_NUM_THREADS=str(used))
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(used)
    print(f"{used} threads", flush=True)


def redirect(log: Path):
    """Send this process's output, that of C libraries included, to `log`; return the old stderr."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    console = os.fdopen(os.dup(2), "w", buffering=1)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    return console
