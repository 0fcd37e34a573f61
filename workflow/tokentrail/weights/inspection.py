"""A look into every tensor file, once, when it is first stored."""

from __future__ import annotations

from pathlib import Path

from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, header
from tokentrail.weights.blobs import Blob

FLOATS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}
BLOCK = 1 << 26  # bytes looked at in one go; a multiple of every number's size
# Old GPT-2 checkpoints store their causal mask; the loader drops these, so their format does not matter.
MASKS = (".attn.bias", ".attn.masked_bias")


def dtypes(blob: Blob) -> list[str]:
    """The number formats of a safetensors file, sorted.

    On first use the whole file is read. Raises WeightsError if it is truncated, stores other numbers than
    floating-point ones, or holds a NaN or an infinity.
    """
    noted = blobs.facts(blob)
    if noted is None:
        noted = {"dtypes": _inspect(blob)}
        blobs.note(blob, noted)
    return noted["dtypes"]


def _inspect(blob: Blob) -> list[str]:
    from safetensors import SafetensorError, safe_open

    stated = header.read(blob.path)
    for name, entry in stated.tensors.items():
        if entry["dtype"] not in FLOATS and not name.endswith(MASKS):
            raise WeightsError(
                f"{name} in {blob.name} is stored as {entry['dtype']}, but only {', '.join(FLOATS)} are read; "
                "choose weights that are not packed or quantized"
            )
    try:
        with safe_open(blob.path, framework="np"):
            pass  # opening checks that the tensors fill the file without a gap or an overlap
    except SafetensorError as error:
        raise WeightsError(f"{blob.name} is not a valid safetensors file ({error}); fetch it again") from None
    for name, entry in stated.tensors.items():
        begin, end = (stated.data_start + offset for offset in entry["data_offsets"])
        if entry["dtype"] in FLOATS and not _finite(blob.path, begin, end, entry["dtype"]):
            raise WeightsError(
                f"{name} in {blob.name} holds NaN or infinity, so no result could be trusted; fetch the file "
                "again or choose another revision"
            )
    return sorted({entry["dtype"] for entry in stated.tensors.values()})


def _finite(path: Path, begin: int, end: int, dtype: str) -> bool:
    """Whether all numbers between two bytes of a file are finite, looked at a block at a time."""
    import numpy as np

    form = np.dtype(FLOATS[dtype])
    for start in range(begin, end, BLOCK):
        values = np.fromfile(path, form, count=(min(start + BLOCK, end) - start) // form.itemsize, offset=start)
        # numpy has no bfloat16; an exponent of ones alone means NaN or infinity.
        finite = (values & 0x7F80) != 0x7F80 if dtype == "BF16" else np.isfinite(values)
        if not finite.all():
            return False
    return True
