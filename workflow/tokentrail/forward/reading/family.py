"""What a family says of its models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tokentrail.forward.reading.recipe import Recipe
from tokentrail.forward.spec import Layer, Spec


class Modules(NamedTuple):
    """Modules by their dotted names in transformers' model, which is the reference that parity is judged by."""

    layers: str  # the list of layers; a layer's input and output are the stream
    final_norm: str
    sites: Callable[[Layer], dict[str, str]]  # by our site, the module inside a layer that puts out the same


class Family(NamedTuple):
    """How the checkpoints of some model types are read, and where the reference makes the same tensors."""

    about: str
    """What it is, in a sentence for readers: its file's docstring."""
    model_types: tuple[str, ...]
    """The values of config.json's `model_type`; that of a checkpoint becomes its Spec's `family`."""
    read: Callable[[dict[str, Any]], Spec]
    """The Spec of a config.json. Raises UnsupportedError, naming the key, the value and what is supported instead."""
    recipes: Callable[[Spec, set[str]], tuple[dict[str, Recipe], set[str]]]
    """How each of our tensors is made from the stored names, and which stored names are of no use."""
    modules: Modules
