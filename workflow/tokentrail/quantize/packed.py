"""A packed model in one safetensors file, and the model that runs from it.

The file holds our own tensor names. A quantized matrix `m` is stored as `m.codes` (bytes, see `packing.py`),
`m.scales` and, in asymmetric schemes, `m.middles`; everything else as float32. The metadata names the format, the
scheme, the quantized tensors, the SHA-256 of the weights that they were made from, and their config.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tokentrail.errors import QuantizationError
from tokentrail.forward.assemble import assemble
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import Model
from tokentrail.forward.shapes import shapes
from tokentrail.quantize.cells import PackedTable, packed_linear, refusal
from tokentrail.quantize.packing import pack
from tokentrail.quantize.parts import HEAD, TOKENS, quantizable, splits
from tokentrail.quantize.quantizer import Quantized, quantize
from tokentrail.quantize.scheme import Scheme
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import named_tensors

FORMAT = "tokentrail packed weights, version 1"
TABLES = (TOKENS, "positions")  # read by row


def model_refusal(checkpoint: Checkpoint, scheme: Scheme, tensors: frozenset[str], device: torch.device) -> str:
    """Why a model with `tensors` packed by this scheme cannot run here; empty if it can."""
    shapes_of = quantizable(read_spec(checkpoint.config))
    for name in sorted(tensors):
        if why := refusal(scheme, shapes_of[name], device):
            return f"{name.removesuffix('.weight')}: {why}"
    return ""


def write_packed(checkpoint: Checkpoint, scheme: Scheme, tensors: frozenset[str], path: Path) -> None:
    """Quantize `tensors` of a checkpoint, one at a time, and store everything that the model needs at `path`.

    A tied table is stored once, unless only one of its uses is among `tensors`. Raises QuantizationError if no
    kernel here runs them.
    """
    if why := model_refusal(checkpoint, scheme, tensors, torch.device("cpu")):
        raise QuantizationError(f"{why}; choose another scheme, or run it simulated")
    spec, tensor = named_tensors(checkpoint)
    stored: dict[str, Tensor] = {}
    for name in shapes(spec) | quantizable(spec):
        tied = spec.tied and name == HEAD
        if tied and not splits(spec, tensors):
            continue
        weights = tensor(TOKENS if tied else name)
        stored |= as_stored(name, quantize(weights, scheme, name=name)) if name in tensors else {name: weights.float()}
    metadata = {
        "format": FORMAT,
        "scheme": json.dumps(asdict(scheme)),
        "quantized": json.dumps(sorted(tensors)),
        "weights_sha256": checkpoint.sha256,
        "config": json.dumps(checkpoint.config),
    }
    save_file(stored, path, metadata)


def as_stored(name: str, q: Quantized) -> dict[str, Tensor]:
    parts = {f"{name}.codes": pack(q.codes, q.scheme.bits), f"{name}.scales": q.scales.contiguous()}
    return parts if q.middles is None else parts | {f"{name}.middles": q.middles.contiguous()}


def read_packed(path: Path, activations: torch.dtype | None = None) -> Model:
    """The model in a packed file. No matrix that is stored as codes is ever made float32.

    The kernels run in the format of the stored scales, or in `activations`; float32 is slow and shows the bytes as
    they are, without the rounding of activations.

    A looked-up table stays in the file, mapped into memory, and its rows are read as they are asked for. A tied table
    that is also the head is laid out for the kernel beside it. Raises QuantizationError for any other file.
    """
    about = metadata_of(path)
    spec = read_spec(json.loads(about["config"]))
    scheme, quantized = Scheme(**json.loads(about["scheme"])), set(json.loads(about["quantized"]))
    activations = activations or scheme.scale_dtype
    width_of = {name: shape[1] for name, shape in quantizable(spec).items()}

    def stored(name: str) -> Tensor:
        with safe_open(path, framework="pt") as file:  # reopened, so that read pages are given back
            return file.get_tensor(name)

    def codes_of(name: str) -> tuple[Tensor, Tensor, Tensor | None]:
        middles = None if scheme.symmetric else stored(f"{name}.middles").to(activations, copy=True)
        return stored(f"{name}.codes"), stored(f"{name}.scales").to(activations, copy=True), middles

    def tensor(name: str) -> Tensor | None:
        return stored(name).clone() if name in shapes(spec) and name not in quantized else None

    def linear(name: str, bias: Tensor | None):
        return packed_linear(*codes_of(name), scheme, width_of[name], bias)

    model = with_linears(assemble(spec, tensor), quantized, linear)
    for name in quantized.intersection(TABLES):
        model = replace(model, **{name: PackedTable(*codes_of(name), scheme, width_of[name])})
    if HEAD in quantized:
        shared = spec.tied and TOKENS in quantized
        return replace(model, head=linear(TOKENS if shared else HEAD, None))
    if spec.tied and TOKENS in quantized:
        return replace(model, head=model.head._replace(weight=stored(HEAD).clone()))
    return model


def metadata_of(path: Path) -> dict[str, str]:
    """Raises QuantizationError if the file is not one that `write_packed` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            found = file.metadata() or {}
    except (SafetensorError, FileNotFoundError) as error:
        raise QuantizationError(
            f"{path.name} is no safetensors file that can be read: {error}; write it again"
        ) from None
    if found.get("format") != FORMAT:
        raise QuantizationError(f"{path.name} is no packed model: its metadata does not say {FORMAT!r}; write it again")
    return found


def with_linears(model: Model, quantized: set[str], linear: Callable) -> Model:
    """The model with the linear cells of its layers whose weights are `quantized` made by `linear(name, bias)`."""
    layers = []
    for i, layer in enumerate(model.layers):
        parts = {}
        for part, own in layer.items():
            names = {field: f"layers.{i}.{part}.{field}.weight" for field in own.cell._fields}
            made = {
                field: linear(name, getattr(own.cell, field).bias) for field, name in names.items() if name in quantized
            }
            parts[part] = own._replace(cell=own.cell._replace(**made))
        layers.append(parts)
    return replace(model, layers=tuple(layers))
