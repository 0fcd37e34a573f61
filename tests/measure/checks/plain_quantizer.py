"""Quantization weight by weight, from the words of the configuration, and the bytes that it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
DEFAULTS = {
    "symmetric": True,
    "divisor": "largest_code",
    "grouping": "input",
    "rest": "short",
    "scale": "absmax",
    "scales": "float16",
    "outliers": 0.0,
    "weights": ["all"],
    "one_at_a_time": False,
    "packed": False,
}


@dataclass
class Plain:
    """A matrix (out, in) read back, its codes, and the scale of every group in order."""

    read: np.ndarray
    codes: np.ndarray
    scales: list[float] = field(default_factory=list)
    groups: list[list[tuple[int, int]]] = field(default_factory=list)


def quantized(matrix: Tensor, scheme: dict, stored_turned: bool) -> Plain:
    s = DEFAULTS | scheme
    weights = matrix.numpy().astype(np.float32)
    plain = Plain(np.zeros_like(weights), np.zeros(weights.shape, dtype=int))
    by_size = sorted(np.ndindex(*weights.shape), key=lambda at: -abs(weights[at]))
    apart = set(by_size[: round(s["outliers"] * weights.size)])
    for places in groups_of(weights.shape, s, stored_turned):
        codes, scale, middle = best([np.float32(0) if at in apart else weights[at] for at in places], s)
        for at, code in zip(places, codes, strict=True):
            plain.codes[at] = code
            plain.read[at] = stored(weights[at], s) if at in apart else np.float32(code) * scale + middle
        plain.scales.append(float(scale))
        plain.groups.append(places)
    return plain


def groups_of(shape, s, stored_turned):
    """The places of each group: neighbours of one output, of one input, or as the checkpoint stores them."""
    out, into = shape
    rows = [[(o, i) for i in range(into)] for o in range(out)]
    columns = [[(o, i) for o in range(out)] for i in range(into)]
    match s["grouping"]:
        case "input":
            lines = rows
        case "output":
            lines = columns
        case "flattened":
            lines = [[at for line in (columns if stored_turned else rows) for at in line]]
    for line in lines:
        size = len(line) if s["group_size"] == "channel" else s["group_size"]
        yield from (line[start : start + size] for start in range(0, len(line), size))


def stored(value, s) -> np.float32:
    """A number in the format of the scales."""
    return np.float32(torch.tensor(float(value), dtype=torch.float32).to(DTYPES[s["scales"]]).item())


def best(weights, s):
    """Codes, scale and middle of one group; of searched scales those that lose least."""
    lowest, highest = -(2 ** (s["bits"] - 1)), 2 ** (s["bits"] - 1) - 1
    low, high = min(weights), max(weights)
    if s["symmetric"]:
        step = max(-low, high) / np.float32(highest if s["divisor"] == "largest_code" else -lowest)
    else:
        step = (high - low) / np.float32(highest - lowest)
    found = None
    for share in [1 - k / 20 for k in range(11)] if s["scale"] == "search" else [1]:
        scale = stored(step * np.float32(share), s)
        centre = (high + low) / np.float32(2)
        middle = np.float32(0) if s["symmetric"] else stored(centre + scale / np.float32(2), s)
        codes = [min(max(round(float((w - middle) / scale)), lowest), highest) if scale else 0 for w in weights]
        lost = sum(float(np.float32(c) * scale + middle - w) ** 2 for c, w in zip(codes, weights, strict=True))
        if found is None or lost < found[0]:
            found = lost, (codes, scale, middle)
    return found[1]


def payload(shape: tuple[int, int], scheme: dict) -> int:
    """Bytes of one quantized matrix: codes in whole bytes for each output, scales, middles and outliers."""
    s = DEFAULTS | scheme
    out, into = shape
    width = {"float16": 2, "bfloat16": 2, "float32": 4}[s["scales"]]
    groups = len(list(groups_of(shape, s, False)))
    kept = round(s["outliers"] * out * into)
    return out * math.ceil(into * s["bits"] / 8) + groups * width * (1 if s["symmetric"] else 2) + kept * (4 + width)


# a model's tensors by the names that the forward pass gives them


def matrices_of(model, kinds) -> dict[str, Tensor]:
    """Every matrix that can be quantized, in the order of the pass; the head by its own name, tied or not."""
    found = {"tokens": model.tokens, "head.weight": model.head.weight}
    if model.positions is not None:
        found["positions"] = model.positions
    for i, (kind, layer) in enumerate(zip(kinds, model.layers, strict=True)):
        for name in ("qkv", "out") if kind == "attention" else ("in_proj", "out_proj"):
            found[f"layers.{i}.mixer.{name}.weight"] = getattr(layer["mixer"].cell, name).weight
        for name in ("up", "down"):
            found[f"layers.{i}.ffn.{name}.weight"] = getattr(layer["ffn"].cell, name).weight
    return found


def part_of(name: str, kinds) -> str:
    """The part that a matrix belongs to in the configuration's words."""
    match name.split("."):
        case ["layers", layer, "mixer", cell, _]:
            return f"{kinds[int(layer)]}.{cell}"
        case ["layers", _, "ffn", cell, _]:
            return f"ffn.{cell}"
    return name.removesuffix(".weight")


def with_weights(model, changed: dict[str, Tensor]):
    """The model with other matrices in place; a tied head stays tied unless it is named."""
    layers = list(model.layers)
    for name, weight in changed.items():
        if name.startswith("layers."):
            _, layer, part, cell, _ = name.split(".")
            sub = layers[int(layer)][part]
            linear = getattr(sub.cell, cell)._replace(weight=weight)
            layers[int(layer)] = layers[int(layer)] | {part: sub._replace(cell=sub.cell._replace(**{cell: linear}))}
    model = replace(model, layers=tuple(layers))
    for name in ("tokens", "positions"):
        if name in changed:
            model = replace(model, **{name: changed[name]})
    if "head.weight" in changed:
        model = replace(model, head=model.head._replace(weight=changed["head.weight"]))
    return model
