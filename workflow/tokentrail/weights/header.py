"""The header of a safetensors file: names, shapes and number formats, read without reading the tensors.

The format: 8 bytes with the header's length (little-endian), the header as JSON, then the tensors' bytes. See
https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokentrail.errors import WeightsError

LARGEST_HEADER = 100_000_000  # the limit of the safetensors library


@dataclass(frozen=True)
class Header:
    """What a safetensors file states about its tensors."""

    tensors: dict[str, dict]  # name -> {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}
    metadata: dict[str, str]
    data_start: int  # where the tensors' bytes begin; `data_offsets` count from here


@cache
def read(path: Path) -> Header:
    """The header of the file at `path`.

    Raises WeightsError if the file is no safetensors file or is shorter or longer than its header says.
    """
    name, size = path.name, path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 2 <= length <= LARGEST_HEADER:
            raise WeightsError(f"{name} is not a safetensors file: it does not start with a header; fetch it again")
        raw = file.read(length)
    if len(raw) < length:
        raise WeightsError(
            f"{name} is truncated: its header has {length} bytes and {len(raw)} are there; fetch it again"
        )
    try:
        tensors = json.loads(raw)
        metadata = tensors.pop("__metadata__", None) or {}
        data = max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
        if not all(isinstance(entry["dtype"], str) and isinstance(entry["shape"], list) for entry in tensors.values()):
            raise TypeError
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise WeightsError(f"{name} is not a safetensors file: its header is no valid JSON; fetch it again") from None
    whole = 8 + length + data
    if size != whole:
        problem = "truncated" if size < whole else "longer than its tensors"
        raise WeightsError(f"{name} is {problem}: it should have {whole} bytes and has {size}; fetch it again")
    return Header(tensors, metadata, 8 + length)
