"""How far each matrix moves when it is quantized, how its weights are spread, and how many groups hold an outlier."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.errors import OutOfRangeError
from tokentrail.forward import spec as specs
from tokentrail.quantize.groups import cut, lines
from tokentrail.quantize.moved import moved
from tokentrail.quantize.parts import HEAD, TOKENS, parts
from tokentrail.quantize.quantizer import Quantized, dequantize, quantize
from tokentrail.stages.quantization.cases import Case, cases
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import named_tensors, turned_tensors, usable_device

FAR = 4  # standard deviations beyond which a weight counts as an outlier
SHOWN = 6  # weights and codes shown of each matrix
NO_CODES = {"mean_abs_error": None, "relative_error": None, "first_scale": None, "first_codes": ""}


@torch.inference_mode()
def measure(checkpoint: Checkpoint, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `quantization_error`: each matrix of each scheme, a tied table once."""
    spec, tensor = named_tensors(checkpoint)
    turned, device = turned_tensors(checkpoint), usable_device(settings["device"])
    rows = (
        row(case, name, tensor(name).float().to(device), name in turned)
        for case in cases(spec, settings["schemes"])
        for name in in_order(spec, case)
    )
    return tables.frame("quantization_error", list(rows), model=settings["model"])


def in_order(spec: specs.Spec, case: Case) -> list[str]:
    """The tensors of a case, part by part and layer by layer; a tied table once, whichever its use."""
    uses = [name for of_part in parts(spec).values() for name in of_part if name in case.tensors]
    return list(dict.fromkeys(TOKENS if name == HEAD and spec.tied else name for name in uses))


def row(case: Case, name: str, matrix: Tensor, turned: bool) -> dict[str, Any]:
    """matrix (out, in) -> what the table says of it."""
    std, largest = matrix.std(correction=0).item(), matrix.abs().max().item()
    far = matrix.abs() > FAR * std
    outlying = [(part.any(dim=-1)).sum().item() for part in cut(lines(far, case.scheme, turned), case.scheme)]
    groups = [math.prod(part.shape[:2]) for part in cut(lines(matrix, case.scheme, turned), case.scheme)]
    try:
        codes = of_codes(quantize(matrix, case.scheme, turned, name), matrix, turned)
    except OutOfRangeError as why:
        codes = NO_CODES | {"status": "skipped", "reason": str(why)}
    return case.about | {
        "tensor": name,
        "shape": "x".join(map(str, matrix.shape)),
        "std": std,
        "max_abs": largest,
        "max_sigma": largest / std if std else 0.0,
        "beyond_4_sigma": far.double().mean().item(),
        "groups": sum(groups),
        "groups_with_outlier": sum(outlying),
        "first_weights": ", ".join(f"{w:.4f}" for w in first(matrix, turned)),
        **codes,
    }


def of_codes(q: Quantized, matrix: Tensor, turned: bool) -> dict[str, Any]:
    """What the table says of a matrix's codes."""
    change = moved(matrix, dequantize(q), q.scales)
    return {
        "mean_abs_error": change.mean_abs_error,
        "relative_error": change.relative_error,
        "first_scale": q.scales.flatten()[0].item(),
        "first_codes": ", ".join(map(str, first(q.codes, turned))),
        "status": "ok",
        "reason": "",
    }


def first(matrix: Tensor, turned: bool) -> list:
    """The first numbers of a matrix (out, in), in the order of the checkpoint."""
    return (matrix.t() if turned else matrix).flatten()[:SHOWN].tolist()
