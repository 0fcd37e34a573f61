"""The settings of a training, typed: `training.yaml` is read into `Reference`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError

from tokentrail.config import Name, Section, explain
from tokentrail.errors import ConfigError

FILE = Path(__file__).with_name("training.yaml")
PASSAGE = "passage"
"""The one stage of all reference models together."""


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


class Vocabulary(Section):
    """The tokenizer that all of them share."""

    pieces: int = Field(ge=300)
    """Pieces, the end of text and the 256 bytes included."""
    texts: int = Field(ge=1)
    """Texts that it is made from."""
    words: int = Field(ge=20)
    """Words of each of these texts."""
    text_seed: int = 0
    """Seed of these texts."""


class Evaluation(Section):
    """How well they copy names that were held out."""

    seed: int = 0
    """Seed of the wording."""
    names: int = Field(ge=1)
    """Names seen, and as many held out."""
    repeats: list[Annotated[int, Field(ge=0)]]
    """How often a paragraph of filler stands between."""


class Passage(Section):
    """A text that none of them has read, to predict token by token."""

    seed: int
    """Seed of the text; no training and no tokenizer is made from it."""
    stories: int = Field(ge=1)
    """Stories that it tells, interleaved."""
    words: int = Field(ge=20)
    """Words, at most."""


class Reference(Section):
    """All of them, and what they share."""

    vocabulary: Vocabulary
    """The tokenizer."""
    evaluation: Evaluation
    """How well they copy names."""
    passage: Passage
    """A text that none of them has read."""
    models: dict[Name, ReferenceModel] = Field(min_length=1)
    """The models by name."""


def read(path: Path) -> Reference:
    """The settings in a YAML file. Raises ConfigError."""
    try:
        return Reference.model_validate(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ConfigError(
            f"there is no file of training settings at {path}, so there is no model to train; correct --settings"
        ) from None
    except ValidationError as error:
        raise ConfigError(explain(error)) from None


def of_stage(reference: Reference, stage: str, model: str | None = None) -> dict[str, Any]:
    """Exactly the settings that a stage of a reference model uses, or the passage of none, as plain data.

    Raises ConfigError.
    """
    if stage == PASSAGE:
        return reference.passage.model_dump()
    if model not in reference.models:
        raise ConfigError(f"there is no reference model {model!r}; there are {', '.join(reference.models)}")
    chosen = reference.models[model]
    match stage:
        case "training":
            return {"model": model, "vocabulary": reference.vocabulary.model_dump()} | chosen.model_dump(mode="json")
        case "evaluation":
            return {"model": model} | reference.evaluation.model_dump()
        case "card":
            return {"model": model, "training": chosen.training.model_dump(mode="json")}
    raise ConfigError(f"there is no stage of a reference model called {stage!r}")
