"""The families: each reads a checkpoint's config.json into a Spec and says which stored tensors become which,
and where the reference makes the same tensors.

A family is a file here: data plus a few lines. Nothing lists them, and nothing else in the forward pass knows which
family a model is from.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from tokentrail.errors import UnsupportedError
from tokentrail.forward.reading.family import Family, Modules
from tokentrail.forward.reading.recipe import Recipe
from tokentrail.forward.spec import Spec


def found() -> dict[str, Family]:
    """The families of this folder, by the model types that they read."""
    files = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return {model_type: file.FAMILY for file in files for model_type in file.FAMILY.model_types}


FAMILIES = found()


def read_spec(config: dict[str, Any]) -> Spec:
    """The Spec of a checkpoint's config.json.

    Raises UnsupportedError, naming the key, the value and what is supported instead.
    """
    model_type = config.get("model_type")
    if model_type not in list(FAMILIES):
        raise UnsupportedError(
            f"model_type is {model_type!r} in config.json, which no family here implements; "
            f"supported are {', '.join(FAMILIES)}"
        )
    return FAMILIES[model_type].read(config)


def modules(spec: Spec) -> Modules:
    """Where transformers' model of the family makes what our sites name."""
    return FAMILIES[spec.family].modules


def recipes(spec: Spec, stored: set[str]) -> tuple[dict[str, Recipe], set[str]]:
    """How each of our tensors is made from the `stored` names, and which stored names are of no use."""
    return FAMILIES[spec.family].recipes(spec, stored)
