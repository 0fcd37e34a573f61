"""The settings of a training, typed: `resources/reference/training.yaml` is read into `Reference`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from tokentrail.config import Name, Section


class Phase(Section):
    """Some steps of the training, with texts of some lengths."""

    steps: int = Field(ge=1)
    """Steps."""
    lengths: tuple[int, int]
    """Shortest and longest text, in tokens; each step draws one length, uniform in its logarithm."""
    batch_tokens: int = Field(ge=1)
    """Tokens of a batch: a step has as many texts of its length as fit."""


class Training(Section):
    """How a model is trained."""

    seed: int = 0
    """Seed of the first weights, the texts and the mixers dropped."""
    learning_rate: float = Field(gt=0)
    """Largest learning rate; it rises over `warmup` steps and falls along a cosine to a twentieth."""
    warmup: int = Field(default=50, ge=1)
    """Steps in which the learning rate rises."""
    weight_decay: float = Field(default=0.05, ge=0)
    """Weight decay of the matrices."""
    answer_weight: float = Field(default=1.0, gt=0)
    """Weight of the mean loss of the answers' tokens beside the mean loss of all tokens."""
    drop_mixers: float = Field(default=0.15, ge=0, lt=1)
    """Probability with which a text does without a layer's mixer."""
    embedding_std: float = Field(default=0.02, gt=0)
    """Standard deviation of the first embeddings."""
    phases: list[Phase] = Field(min_length=1)
    """The curriculum."""


class ReferenceModel(Section):
    """One model."""

    config: dict[str, Any]
    """Its config.json, but for the vocabulary."""
    training: Training
    """How it is trained."""


class Reference(Section):
    """All of them, and the vocabulary that they share."""

    vocabulary: int = Field(ge=300)
    """Pieces of the tokenizer."""
    vocabulary_texts: int = Field(ge=1)
    """Texts that the tokenizer is made from."""
    models: dict[Name, ReferenceModel] = Field(min_length=1)
    """The models by name."""


def read(path: Path) -> Reference:
    return Reference.model_validate(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
