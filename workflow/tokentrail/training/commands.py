"""The scripts of the reference models from a shell: `python scripts/train_reference.py --model gpt2-mini`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tokentrail import stage
from tokentrail.errors import TokentrailError
from tokentrail.training import settings, text

OUTPUTS = {"training": "training.parquet", "evaluation": "evaluation.parquet", "card": "README.md"}
TEXTS = {settings.PASSAGE: "held_out_stories.txt"}  # of no model


def run(main: Callable[[stage.Job], None], step: str) -> None:
    """Run a script's `main` with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    if step in OUTPUTS:
        parser.add_argument("--model", required=True, help="model, as the settings name it")
    parser.add_argument("--settings", type=Path, default=settings.FILE, help="how the models are trained")
    parser.add_argument("--text", type=Path, default=text.FILE, help="what the text is put together from")
    parser.add_argument("--results", type=Path, default=Path("results/reference"), help="folder of the models")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads for torch")
    arguments = parser.parse_args()
    model = getattr(arguments, "model", None)
    folder = arguments.results / (model or "")
    inputs = {"text": arguments.text} | {table: folder / OUTPUTS[table] for table in OUTPUTS}
    try:
        job = stage.Job(
            stage=step,
            settings=settings.of_stage(settings.read(arguments.settings), step, model),
            inputs=lambda name: [inputs[name]],
            outputs=[folder / (OUTPUTS | TEXTS)[step]],
            threads=arguments.threads,
        )
    except TokentrailError as error:
        sys.exit(f"{step}: {error}")
    sys.exit(stage.call(main, job))
