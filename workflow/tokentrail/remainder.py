"""What is left of a run that lost models: a report on the others, made by a run of the same workflow without them.

A run, and not a call of the scripts that draw, so that snakemake knows what each chart and the report were made from:
when the cause is mended, the next run finds that they lack models, and makes them whole.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokentrail.config import Config
from tokentrail.runlock import held

LOST: list[dict[str, str]] = json.loads(os.environ.get("TOKENTRAIL_LOST", "[]"))
"""In a run that reports on the rest: what the run before it lost, as `lost_models` has it; empty in any other."""


def report_on(
    kept: list[str], lost: list[dict[str, str]], config: dict[str, Any], options: list[str], report: str
) -> None:
    """Make the report on the models in `kept`, and say on stderr what it shows and what was lost.

    `options` are those of snakemake that the run before was given. It still holds the results folder and hands its hold
    on; it has also read and checked `config`, which the new run takes as it is.
    """
    said = [f"{each['model']} stopped at {each['stage']}. {each['sentence']}" for each in lost]
    if kept:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "config.json")
            file.write_text(json.dumps(config), encoding="utf-8")
            command = [sys.executable, "-m", "snakemake", "report", "--configfile", str(file), "--nolock", *options]
            environment = os.environ | {"TOKENTRAIL_LOST": json.dumps(lost)}
            status = subprocess.run(command, env=environment, pass_fds=held()).returncode
        shows = "is now" if status == 0 else "could not be made as"
        said.append(f"{report} {shows} a report on {', '.join(kept)} alone; run again when the cause is mended.")
    else:
        said.append("No model is left, so there is no report.")
    print("", *said, sep="\n", file=sys.stderr, flush=True)


def without(config: Config, models: Iterable[str]) -> Config:
    """The configuration without these models; what else it says of them, it still says."""
    left = {name: model for name, model in config.models.items() if name not in set(models)}
    return config.model_copy(update={"models": left})


def lost_models(failed: Iterable[Any]) -> list[dict[str, str]]:
    """For each failed job its `model`, its `stage`, and a `sentence` that says what its log says of the failure.

    Empty if a job failed that is no model's, such as a chart: leaving out a model does not help it.
    """
    jobs = [job for each in failed for job in (each.jobs if each.is_group() else [each])]
    models = [getattr(job.wildcards, "model", None) for job in jobs]
    if None in models:
        return []
    named = sorted((model, job.rule.name, job.log[0]) for model, job in zip(models, jobs, strict=True))
    return [
        {"model": model, "stage": stage, "sentence": why(Path(log), f"{stage} of {model}")}
        for model, stage, log in named
    ]


def why(log: Path, who: str) -> str:
    """What the last line of a failed job's log says of the failure, in a sentence that is true of every log."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if last.startswith(f"{who}: "):
        return f"Its log ends with: {last.removeprefix(f'{who}: ')}"
    if any(line.startswith("Traceback") for line in lines):
        return f"It broke off with {last}; its log, {log}, says where."
    return f"It ended without a word, as a process does that the system kills for want of memory; its log is {log}."
