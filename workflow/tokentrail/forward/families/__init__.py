"""The families: each reads a checkpoint's config.json into a Spec and says which stored tensors become which,
and where the reference makes the same tensors.

A family is data plus a few lines. Nothing else in the forward pass knows which family a model is from.
"""

from __future__ import annotations

from typing import Any

from tokentrail.errors import UnsupportedError
from tokentrail.forward.families import gpt2, granite_hybrid, llama, qwen3
from tokentrail.forward.families.modules import Modules
from tokentrail.forward.families.recipe import Recipe
from tokentrail.forward.spec import Spec

FAMILIES = {
    "gpt2": gpt2,
    "llama": llama,
    "qwen2": llama,
    "qwen3": qwen3,
    "granitemoehybrid": granite_hybrid,
}


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
    return FAMILIES[spec.family].MODULES


def recipes(spec: Spec, stored: set[str]) -> tuple[dict[str, Recipe], set[str]]:
    """How each of our tensors is made from the `stored` names, and which stored names are of no use."""
    return FAMILIES[spec.family].recipes(spec, stored)
