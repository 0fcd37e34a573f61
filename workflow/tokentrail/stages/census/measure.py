"""Where the parameters are: every stored tensor, by family."""

from __future__ import annotations

from math import prod
from typing import Any

import polars as pl

from tokentrail.forward import spec as specs
from tokentrail.forward.families import read_spec, recipes
from tokentrail.weights.checkpoint import Checkpoint

HEAD = "lm_head.weight"


def measure(checkpoint: Checkpoint, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `census`. A tied head has a row of its own that shares the token table's storage and counts nothing."""
    spec = read_spec(checkpoint.config)
    stored = set(checkpoint.tensor_names())
    made_from, _ = recipes(spec, stored)
    family = {part: family_of(ours, spec) for ours, recipe in made_from.items() for part in recipe.parts}
    table = made_from["tokens"].parts[0]

    rows = []
    for name, its_family in sorted(family.items()):
        dtype, size = checkpoint.stored(name)
        rows.append(row(name, checkpoint.shape(name), dtype, size, its_family, storage=name))
    if spec.tied:
        shape, (dtype, _) = checkpoint.shape(table), checkpoint.stored(table)
        rows.append(row(HEAD, shape, dtype, 0, "head", storage=table) | {"counted_parameters": 0})
    counted = pl.col("counted_parameters")
    return pl.DataFrame(rows).with_columns(
        model=pl.lit(settings["model"]), family_share=counted.sum().over("family") / counted.sum()
    )


def row(name: str, shape: tuple[int, ...], dtype: str, size: int, family: str, storage: str) -> dict[str, Any]:
    numbers = prod(shape)
    return {
        "tensor": name,
        "shape": "x".join(str(n) for n in shape),
        "stored_dtype": dtype,
        "parameters": numbers,
        "counted_parameters": numbers,
        "stored_bytes": size,
        "family": family,
        "storage": storage,
    }


def family_of(ours: str, spec: specs.Spec) -> str:
    """The family of one of our tensors, by its name."""
    match ours.split("."):
        case ["tokens"]:
            return "token_embedding"
        case ["positions"]:
            return "position_embedding"
        case ["head", *_]:
            return "head"
        case ["layers", layer, name, *_] if name in (cells := cells_of(spec.layers[int(layer)])):
            return cells[name].part
    return "norm"


def cells_of(layer: specs.Layer) -> dict[str, specs.Cell]:
    return {sub.name: sub.cell for sub in layer.sublayers}
