"""The models that the benchmarks run: the embedded run's real one, and the published shapes with random weights."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "tests")]

from tokentrail.forward.frame import Model  # noqa: E402
from tokentrail.stages.timing import timing  # noqa: E402

PUBLISHED = ("gpt2", "qwen3-0.6b", "granite-4.0-h-350m")
SHAPES = ("smollm2", *PUBLISHED)


def checkpoint_of(shape: str, folder: Path):
    """A checkpoint and its transformers model, eager; `folder` is where random weights are written."""
    if shape == "smollm2":
        from tokentrail import config
        from tokentrail.measure.reference import open_reference
        from tokentrail.weights.checkpoint import open_checkpoint
        from tokentrail.weights.fetch import fetch

        chosen = config.load(ROOT / "config/config.yaml")
        name = next(iter(chosen.models))
        asked = config.settings(chosen, "weights", name)
        checkpoint = open_checkpoint(fetch(name, asked["source"], asked["license"], ROOT / asked["lock_file"]))
        return checkpoint, open_reference(checkpoint)
    from random_models import FULL_SHAPES, build

    pair = build(FULL_SHAPES[shape], folder)
    return pair.checkpoint, pair.reference


def random_ids(model: Model, tokens: int) -> torch.Tensor:
    return timing.random_ids(model.spec.vocabulary, 1, tokens)
