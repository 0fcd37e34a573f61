"""What queries can read beside the stages' tables: what the models' configurations say, and the settled choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tokentrail.forward.spec import Spec, kind_of

OF_MODELS = {
    "models": {
        "model": pl.String,
        "layers": pl.Int64,
        "width": pl.Int64,
        "vocabulary": pl.Int64,
        "learned_positions": pl.Int64,
        "embedding_scale": pl.Float64,
        "logit_divisor": pl.Float64,
        "tied": pl.Boolean,
        "norm": pl.String,
        "norm_eps": pl.Float64,
    },
    "sublayers": {
        "model": pl.String,
        "layer": pl.Int64,
        "name": pl.String,
        "cell": pl.String,
        "update_scale": pl.Float64,
        "heads": pl.Int64,
        "kv_heads": pl.Int64,
        "head_dim": pl.Int64,
        "attention_scale": pl.Float64,
        "rope_theta": pl.Float64,
        "inner_width": pl.Int64,
    },
}
"""Two tables of the configurations: one row a model, and one row a sub-layer, empty where its cell has no such number.
"""
CHOSEN = {"quantization_chosen": "quantization", "quantization_error_chosen": "quantization_error"}
"""Two tables cut down to the schemes of one choice, and what each is cut from; `choice.py` says which."""


def of_models(specs: Mapping[str, Spec]) -> dict[str, pl.DataFrame]:
    """The tables `models` and `sublayers`. `specs`: a model's Spec by its name."""
    rows = {
        "models": [model_row(model, spec) for model, spec in specs.items()],
        "sublayers": [row for model, spec in specs.items() for row in sublayer_rows(model, spec)],
    }
    return {name: pl.DataFrame(rows[name], schema=columns) for name, columns in OF_MODELS.items()}


def model_row(model: str, spec: Spec) -> dict[str, Any]:
    same = ("width", "vocabulary", "learned_positions", "embedding_scale", "logit_divisor", "tied")
    norm = {"norm": spec.norm.kind, "norm_eps": spec.norm.eps}
    return {"model": model, "layers": len(spec.layers)} | {name: getattr(spec, name) for name in same} | norm


def sublayer_rows(model: str, spec: Spec) -> list[dict[str, Any]]:
    return [
        {"model": model, "layer": at, "name": sub.name, "cell": kind_of(sub.cell), "update_scale": sub.scale}
        | {name: getattr(sub.cell, name, None) for name in ("heads", "kv_heads", "head_dim")}
        | {
            "attention_scale": getattr(sub.cell, "scale", None),
            "rope_theta": getattr(getattr(sub.cell, "rope", None), "theta", None),
            "inner_width": getattr(sub.cell, "width", None),
        }
        for at, layer in enumerate(spec.layers)
        for sub in layer.sublayers
    ]
