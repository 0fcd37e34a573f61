"""Sizes and work that follow from shapes alone: parameters, payloads, caches, activations and operations.

A product of (M, K) with (K, N) is counted as 2 M K N operations. Norms, softmax and other work that grows with one
factor alone are left out, as is customary.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from math import prod
from typing import Any

import polars as pl

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.families import read_spec
from tokentrail.forward.kinds.attention import keys_and_values
from tokentrail.forward.kinds.cell import Kept
from tokentrail.forward.shapes import shapes
from tokentrail.quantize.parts import quantizable
from tokentrail.weights.checkpoint import Checkpoint

FLOAT32, FLOAT16 = 4, 2
"""Bytes of a number."""
SCALE_BYTES = FLOAT16
TABLES = ("tokens", "positions")
PAYLOADS = {  # number format: bits of the matrices, of the tables, and weights that share a scale
    "float32": (32, 32, 0),
    "float16": (16, 16, 0),
    "8 bits, group 64": (8, 8, 64),
    "4 bits, group 64": (4, 4, 64),
    "4 bits, group 32, tables float32": (4, 32, 32),
}
PARTS = {
    "mixer_norm": "norm before the mixer",
    "mixer_norm_after": "norm after the mixer",
    **{f"mixer.{name}": words for kind in specs.KINDS if kind.mixes for name, words in kind.tensors.items()},
    "ffn_norm": "norm before the FFN",
    "ffn_norm_after": "norm after the FFN",
    **{f"ffn.{name}": words for name, words in specs.Ffn.tensors.items()},
    "tokens": "token table",
    "positions": "position table",
    "final_norm": "last norm",
    "head": "output table",
}
"""Our names of a layer's parts, and of what stands outside the layers, in words."""


def measure(checkpoint: Checkpoint, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `arithmetic`: read from config.json, so that it can be held against the stored tensors."""
    spec = read_spec(checkpoint.config)
    rows = [*parameters(spec), *payloads(spec)]
    for batch in settings["rows"]:
        for tokens in settings["tokens"]:
            at = {"rows": batch, "tokens": tokens}
            rows += [row | at for row in (*kept(spec, batch, tokens), *flops(spec, batch, tokens))]
    rows += hypothetical(settings)
    empty = {"subject": "model", "layers": 1, "rows": 0, "tokens": 0}
    return tables.frame("arithmetic", [empty | row for row in rows], model=settings["model"])


def parameters(spec: specs.Spec) -> Iterator[dict[str, Any]]:
    """Each part of the layers that have it alike, each table, and the total; a part's bias counts with it."""
    of_part: dict[tuple[str, str], list[tuple[int, ...]]] = defaultdict(list)
    for name, shape in shapes(spec).items():
        inner = name.split(".", 2)[2] if name.startswith("layers.") else name
        where, part = name.removesuffix(inner), inner.removesuffix(".weight").removesuffix(".bias")
        of_part[where, part].append(shape)
    alike = Counter((part, tuple(its_shapes)) for (_, part), its_shapes in of_part.items())
    values = []
    for (part, its_shapes), layers in alike.items():
        values.append(layers * sum(map(prod, its_shapes)))
        formula = " + ".join("*".join(map(str, shape)) for shape in its_shapes)
        formula = f"{layers}*({formula})" if layers > 1 else formula
        row = {"part": PARTS[part], "layers": layers, "value": values[-1], "formula": formula}
        yield {"quantity": "parameters"} | row
    yield total("parameters", values)


def total(quantity: str, values: list[int]) -> dict[str, Any]:
    return {"quantity": quantity, "part": "all", "value": sum(values), "formula": " + ".join(map(str, values))}


def payload_bytes(weights: int, bits: int, group: int = 0) -> int:
    """Bytes of `weights` codes, and of one float16 scale for every `group` of them, 0 for none."""
    return -(-weights * bits // 8) + scale_count(weights, group) * SCALE_BYTES


def scale_count(weights: int, group: int) -> int:
    """Groups of `group` weights, the last of them possibly shorter."""
    return -(-weights // group) if group else 0


def payloads(spec: specs.Spec) -> Iterator[dict[str, Any]]:
    """The model's weights in each of PAYLOADS; norms, biases and other small tensors stay float32 beside codes."""
    sizes: dict[str, list[int]] = {"matrices": [], "tables": [], "small": []}
    large = quantizable(spec)
    for name, shape in shapes(spec).items():
        sizes["tables" if name in TABLES else "matrices" if name in large else "small"].append(prod(shape))
    for form, (bits, table_bits, group) in PAYLOADS.items():
        bits_of = {"matrices": bits, "tables": table_bits, "small": 32 if group else bits}
        grouped = {kind: group if group and bits_of[kind] < 32 else 0 for kind in sizes}
        value = sum(payload_bytes(n, bits_of[kind], grouped[kind]) for kind in sizes for n in sizes[kind])
        scales = sum(scale_count(n, grouped[kind]) for kind in sizes for n in sizes[kind])
        terms = [f"{sum(sizes[kind])}*{bits_of[kind]}/8" for kind in sizes]
        terms += [f"{scales}*{SCALE_BYTES}"] if scales else []
        yield {"quantity": "payload", "part": form, "value": value, "formula": " + ".join(terms)}


def kv_bytes(layers: int, kv_heads: int, head_dim: int, tokens: int, rows: int = 1, size: int = FLOAT32) -> int:
    """Bytes of the keys and values of layers that are alike."""
    return layers * rows * keys_and_values(kv_heads, head_dim, tokens).bytes(size)


def kept(spec: specs.Spec, rows: int, tokens: int) -> Iterator[dict[str, Any]]:
    """What a pass leaves behind for the next token, and what it needs at once, in float32 bytes."""
    of_kind = alike(spec)
    for cell, layers in of_kind.items():
        if cell.mixes:
            for each in cell.kept(tokens):
                yield cached(each, layers, rows)
            yield from activations(cell, rows, tokens)
    yield activation("stream", rows, tokens, spec.width)
    found = [row for cell in of_kind if not cell.mixes for row in activations(cell, rows, tokens)]
    yield from {row["formula"]: row for row in found}.values()
    yield activation("logits of the last position", rows, spec.vocabulary)


def alike(spec: specs.Spec) -> dict[specs.Cell, int]:
    """The cells that differ, the mixers first, and how many layers have each."""
    return Counter(sorted(spec.cells, key=lambda cell: not cell.mixes))


CACHED = {"kv": "keys and values", "conv": "convolution windows", "state": "states"}


def cached(kept: Kept, layers: int, rows: int) -> dict[str, Any]:
    """Bytes of what all layers keep of all rows."""
    factors = (kept.tensors, layers, rows, *kept.shape, FLOAT32)
    return {
        "quantity": "cache",
        "part": CACHED[kept.name],
        "layers": layers,
        "value": layers * rows * kept.bytes(FLOAT32),
        "formula": "*".join(map(str, factors if kept.tensors > 1 else factors[1:])),
    }


def activations(cell: specs.Cell, rows: int, tokens: int) -> Iterator[dict[str, Any]]:
    for part, shape in cell.activations(tokens).items():
        yield activation(part, rows, *shape)


def activation(part: str, *shape: int) -> dict[str, Any]:
    """Bytes of one float32 tensor."""
    value = prod(shape) * FLOAT32
    return {"quantity": "activation", "part": part, "value": value, "formula": "*".join(map(str, (*shape, FLOAT32)))}


def product(part: str, layers: int, *factors: int) -> dict[str, Any]:
    """Operations of `layers` products: 2 * rows * tokens * ... each."""
    value = 2 * layers * prod(factors)
    formula = "*".join(map(str, (2, layers, *factors) if layers > 1 else (2, *factors)))
    return {"quantity": "flops", "part": part, "layers": layers, "value": value, "formula": formula}


def flops(spec: specs.Spec, rows: int, tokens: int) -> Iterator[dict[str, Any]]:
    """Operations of one pass over rows x tokens, by part, logits of the last position alone; and their sum.

    Scores and their use are counted for every pair of positions, the masked ones included. Mamba2's recurrence is
    counted in its step form: the state is written and read.
    """
    parts = [
        product(part, layers, rows, *factors)
        for cell, layers in alike(spec).items()
        for part, factors in cell.products(spec.width, tokens, pairs=(tokens, tokens))
    ]
    parts.append(product("logits", 1, rows, spec.width, spec.vocabulary))
    yield from parts
    yield total("flops", [part["value"] for part in parts])


def hypothetical(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Caches and payloads of models that only the configuration knows."""
    for name, c in settings["caches"].items():
        for tokens in c["tokens"]:
            factors = (c["layers"], c["kv_heads"], c["head_dim"])
            yield {
                "subject": name,
                "quantity": "cache",
                "part": "keys and values",
                "layers": c["layers"],
                "rows": 1,
                "tokens": tokens,
                "value": kv_bytes(*factors, tokens, size=c["bytes_per_number"]),
                "formula": "*".join(map(str, (2, *factors, tokens, c["bytes_per_number"]))),
            }
    for name, p in settings["payloads"].items():
        weights, bits, group = p["parameters"], p["bits"], p["group"]
        scales = scale_count(weights, group)
        for part, value, formula in (
            ("codes", payload_bytes(weights, bits), f"{weights}*{bits}/8"),
            ("scales", scales * SCALE_BYTES, f"{scales}*{SCALE_BYTES}"),
            ("codes and scales", payload_bytes(weights, bits, group), f"{weights}*{bits}/8 + {scales}*{SCALE_BYTES}"),
        ):
            yield {"subject": name, "quantity": "payload", "part": part, "value": value, "formula": formula}
