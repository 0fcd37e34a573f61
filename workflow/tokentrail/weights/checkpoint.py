"""Opening what the weights table lists: no network, no conversion, nothing heavy to import."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, header, model_config

ONLY_FOR_CONVERSION = (".whl", ".gguf")  # read once, so a cache without them is still whole


@dataclass(frozen=True)
class Checkpoint:
    """A model's files, in the cache and verified. Tensors are read with `safetensors.safe_open`."""

    config: dict[str, Any]
    """The parsed `config.json`."""
    tensor_files: tuple[Path, ...]
    """The safetensors files, sorted by name."""
    tokenizer_file: Path | None
    """`tokenizer.json`, the model's own or derived; None only for a checkpoint that reads no text."""
    sha256: str
    """Identity of the weights: SHA-256 over the sorted (file, hash) pairs of the tensor files."""
    files: dict[str, Path] = field(repr=False)
    """Every file of the model by name, derived ones included."""

    def tensor_names(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._where)

    def file_of(self, name: str) -> Path:
        """The file that holds a tensor. Raises WeightsError if there is no such tensor."""
        try:
            return self._where[name]
        except KeyError:
            files = ", ".join(path.name for path in self.tensor_files)
            raise WeightsError(f"{files} holds no tensor {name}; choose weights that are complete") from None

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor. Raises WeightsError if there is no such tensor."""
        return tuple(header.read(self.file_of(name)).tensors[name]["shape"])

    def stored(self, name: str) -> tuple[str, int]:
        """The number format and the bytes that the source file stores a tensor in, before any conversion.

        Raises WeightsError if there is no such tensor.
        """
        path = self.file_of(name)
        if name in self._stored.get(path, {}):
            entry = self._stored[path][name]
            return entry["dtype"], entry["bytes"]
        entry = header.read(path).tensors[name]
        begin, end = entry["data_offsets"]
        return entry["dtype"], end - begin

    @cached_property
    def _where(self) -> dict[str, Path]:
        where: dict[str, Path] = {}
        for path in self.tensor_files:
            for name in header.read(path).tensors:
                if name in where:
                    raise WeightsError(
                        f"tensor {name} is in both {where[name].name} and {path.name}; choose another source"
                    )
                where[name] = path
        return where

    @cached_property
    def _stored(self) -> dict[Path, dict[str, dict]]:
        return {path: json.loads(header.read(path).metadata.get("stored", "{}")) for path in self.tensor_files}


def open_checkpoint(weights: pl.DataFrame) -> Checkpoint:
    """The checkpoint that a weights table lists.

    Raises WeightsError if a file is gone from the cache or was changed there, or if config.json is no JSON
    object.
    """
    rows = weights.select("file", "sha256").rows()
    files: dict[str, Path] = {}
    for name, sha256 in rows:  # a derived file comes after the source file of its name, and is what counts
        blob = blobs.find(name, sha256)
        if blob is None and name.endswith(ONLY_FOR_CONVERSION):
            continue
        if blob is None:
            raise WeightsError(f"{name} is gone from the weights cache {blobs.root()}; run `{blobs.REMEDY}`")
        files[name] = blob.path
    tensors = sorted((name, sha256) for name, sha256 in rows if name.endswith(".safetensors"))
    identity = hashlib.sha256("".join(f"{name} {sha256}\n" for name, sha256 in tensors).encode()).hexdigest()
    if not tensors or "config.json" not in files:
        raise WeightsError(
            f"the weights table lists no {'config.json' if tensors else 'tensors'}; run `{blobs.REMEDY}`"
        )
    return Checkpoint(
        config=model_config.read(files["config.json"]),
        tensor_files=tuple(files[name] for name, _ in tensors),
        tokenizer_file=files.get("tokenizer.json"),
        sha256=identity,
        files=files,
    )
