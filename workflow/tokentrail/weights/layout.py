"""Which files of a repository or folder make up a model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tokentrail.errors import WeightsError
from tokentrail.weights import stated_tokens
from tokentrail.weights.cache import Blob

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")


@dataclass(frozen=True)
class Fetched:
    """What a source gave: the files, the exact revision, and the license that the source states (or "")."""

    files: list[Blob]
    revision: str
    license: str


def choose(names: Iterable[str], where: str) -> list[str]:
    """The files to take: one GGUF, or config.json with safetensors (or their index) and the tokenizer.

    Raises WeightsError if there are only pickled weights, none at all, or a part is missing.
    """
    there = sorted(name for name in names if "/" not in name)
    tensors = [name for name in (WHOLE, INDEX) if name in there][:1]
    if not tensors:
        ggufs = [name for name in there if name.endswith(".gguf")]
        if len(ggufs) == 1:
            return ggufs
        if ggufs:
            raise WeightsError(f"{where} holds {len(ggufs)} GGUF files ({', '.join(ggufs)}); leave only one of them")
        if pickled := [name for name in there if name.endswith(PICKLED)]:
            raise WeightsError(
                f"{where} holds its weights only as {', '.join(pickled)}, a format that can run code when it "
                f"is opened, so it is refused; convert them to {WHOLE} or choose a revision that has it"
            )
        raise WeightsError(
            f"{where} holds neither {WHOLE} nor {INDEX} nor a .gguf file, but {_listed(there)}; choose a "
            "source that has one of them"
        )
    if "config.json" not in there:
        raise WeightsError(f"{where} holds {tensors[0]} but no config.json; add the model's config.json to it")
    if "tokenizer.json" in there:
        tokenizer = ["tokenizer.json"]
    elif {"vocab.json", "merges.txt"} <= set(there):
        tokenizer = ["merges.txt", "vocab.json"]
    else:
        raise WeightsError(
            f"{where} holds no tokenizer.json, nor vocab.json and merges.txt; add the model's tokenizer.json to it"
        )
    settings = [name for name in stated_tokens.FILES if name in there]
    return ["config.json", *tensors, *tokenizer, *settings]


def shards(index: Path, where: str) -> list[str]:
    """The tensor files that an index names. Raises WeightsError if the index is damaged."""
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError):
        raise WeightsError(f"{INDEX} of {where} is not a valid index of tensor files; fetch it again") from None
    for name in names:
        if not name.endswith(".safetensors") or name != Path(name).name:
            raise WeightsError(
                f"{INDEX} of {where} names {name!r}, which is not a plain .safetensors file name; choose another source"
            )
    return names


def _listed(names: list[str], most: int = 12) -> str:
    if not names:
        return "no files at all"
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
