"""Bytes by the formula: what codes, scales and everything else would take, from shapes alone."""

from __future__ import annotations

from math import ceil, prod

from tokentrail.forward import spec as specs
from tokentrail.forward.shapes import shapes
from tokentrail.quantize.groups import groups_of_line, line_shape
from tokentrail.quantize.parts import HEAD, TOKENS, splits
from tokentrail.quantize.scheme import Scheme

FLOAT32, PLACE = 4, 4  # bytes of a weight that is left alone, and of an outlier's place


def matrix_payload(shape: tuple[int, int], scheme: Scheme) -> int:
    """Bytes of one quantized matrix (out, in): codes row by row in whole bytes, scales, middles and outliers."""
    out, into = shape
    count, length = line_shape(shape, scheme)
    scale = scheme.scale_dtype.itemsize
    codes = out * ceil(into * scheme.bits / 8)
    groups = count * groups_of_line(length, scheme)
    kept = round(scheme.outliers * out * into) * (PLACE + scale)
    return codes + groups * scale * (1 if scheme.symmetric else 2) + kept


def model_payload(spec: specs.Spec, scheme: Scheme | None = None, tensors: frozenset[str] = frozenset()) -> int:
    """Bytes of a whole model with `tensors` quantized and everything else in float32.

    A tied table counts once, unless only one of its uses is quantized: then both tables must be kept.
    """
    stored = shapes(spec)
    if splits(spec, tensors):
        stored |= {HEAD: stored[TOKENS]}
    return sum(
        matrix_payload(shape, scheme) if name in tensors else FLOAT32 * prod(shape) for name, shape in stored.items()
    )
