"""The models and where they come from, and the prompts."""

from __future__ import annotations

import functools
import importlib
import operator
import pkgutil
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tokentrail.declare.settings import Section, Text
from tokentrail.weights import sources

SOURCES: dict[str, type[sources.Source]] = {
    found.name: importlib.import_module(sources.module_of(found.name)).SOURCE
    for found in pkgutil.iter_modules(sources.__path__)
}
"""What a model's `source` may be, by its kind."""
Source = Annotated[functools.reduce(operator.or_, SOURCES.values()), Field(discriminator="kind")]


class Model(Section):
    """A model and where its weights come from."""

    source: Source
    """Where the weights come from."""
    config: dict[str, JsonValue] = {}
    """Values to add to the model's `config.json` or to change in it; null takes a key out."""
    label: Text
    """Name to show in charts and in the report."""
    weights_note: str = ""
    """What a reader must know of these weights; shown wherever the model is. Empty for weights as published."""
    training_note: str = ""
    """What the training put in that a finding could be mistaken for; shown once, and wherever such a finding is."""
    license: str = ""
    """License of the weights, if the source does not state it."""
    bos: Literal["tokenizer", "always", "never"] = "tokenizer"
    """Begin-of-text token before a prompt: as the `tokenizer` says, `always`, or `never`."""


class Prompt(Section):
    """A prompt, and the word whose first piece is expected next."""

    text: Text
    """The prompt, exactly as the model is to read it."""
    target: Text
    """Expected next word, with its leading space; its first piece is the target token."""
