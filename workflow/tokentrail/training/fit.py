"""From settings to a checkpoint: the vocabulary is made, the model trained and saved, and the losses kept."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from rich.progress import track
from tokenizers import Tokenizer

from tokentrail import tables
from tokentrail.forward.families import read_spec
from tokentrail.training import checkpoint, vocabulary
from tokentrail.training.parameters import initial
from tokentrail.training.settings import Training
from tokentrail.training.text import Parts, Writer
from tokentrail.training.train import Step, train

WINDOW = 50  # steps that one row of the table is the mean of


def fit(settings: dict[str, Any], parts: Parts, folder: Path) -> pl.DataFrame:
    """Train a model, save it into `folder`, and return table `training`."""
    tokenizer = make_vocabulary(settings["vocabulary"], parts)
    config = checkpoint.complete(settings["config"], tokenizer)
    training = Training.model_validate(settings["training"])
    rows: list[dict[str, Any]] = []
    window: list[Step] = []
    steps = sum(phase.steps for phase in training.phases)
    spec = read_spec(config)
    parameters = initial(spec, training.seed, training.embedding_std)
    for step in track(train(parameters, spec, training, parts, tokenizer), "training", total=steps):
        window.append(step)
        if len(window) == WINDOW or step.number == steps:
            rows.append(mean_of(window, tokens_before=rows[-1]["tokens"] if rows else 0))
            said = f"loss {rows[-1]['loss']:.3f}, answers {rows[-1]['answer_loss']:.3f}"
            print(f"step {step.number} of {steps}: {said}", flush=True)
            window = []
    checkpoint.save(folder, config, parameters, tokenizer)
    return tables.frame("training", rows, model=settings["model"])


def make_vocabulary(settings: dict[str, Any], parts: Parts) -> Tokenizer:
    """The tokenizer, the same for every model."""
    writer = Writer(parts, settings["text_seed"], count=lambda text: len(text.split()))
    texts = (one.text for one in islice(writer.texts(settings["words"]), settings["texts"]))
    return vocabulary.learn(texts, settings["pieces"])


def mean_of(window: list[Step], tokens_before: int) -> dict[str, Any]:
    answers = [step.answer_loss for step in window if not math.isnan(step.answer_loss)]
    return {
        "step": window[-1].number,
        "tokens": tokens_before + sum(step.tokens for step in window),
        "loss": sum(step.loss for step in window) / len(window),
        "answer_loss": sum(answers) / len(answers),
    }
