"""A model's config.json: read as any writer writes it, and changed as the configuration asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokentrail.errors import WeightsError

# How transformers 5 writes the numbers that JSON has none for (`PreTrainedConfig._encode_special_floats`).
SPECIAL_FLOATS = {name: float(name) for name in ("Infinity", "-Infinity", "NaN")}


def read(path: Path) -> dict[str, Any]:
    """The object in a config.json. Raises WeightsError if it holds none."""
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"), object_hook=_special_float)
    except ValueError:
        config = None
    if not isinstance(config, dict):
        raise WeightsError("config.json of the model is not a JSON object; fetch it again or correct its source")
    return config


def _special_float(found: dict[str, Any]) -> Any:
    if list(found) == ["__float__"] and isinstance(found["__float__"], str):
        return SPECIAL_FLOATS.get(found["__float__"], found)
    return found


def changed(config: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The object with the changes merged in: null takes a key out, a mapping is merged (RFC 7396)."""
    merged = dict(config)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            below = config.get(key)
            merged[key] = changed(below if isinstance(below, dict) else {}, value)
        else:
            merged[key] = value
    return merged
