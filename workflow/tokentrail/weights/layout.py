"""Which files of a repository or folder make up a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tokentrail.errors import WeightsError
from tokentrail.weights import stated_tokens
from tokentrail.weights.blobs import Blob

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.gguf|\.safetensors)")
"""The name of one of several files that hold a model together, as llama.cpp and transformers write it."""
ADAPTER = "adapter_config.json"


@dataclass(frozen=True)
class Holder:
    """What holds a model's files, in words, and what its user can do about them."""

    name: str
    editable: bool = False

    def add(self, what: str) -> str:
        """The remedy for something that is missing."""
        if self.editable:
            return f"add {what} to it"
        return f"put its files and {what} into a folder, and give that folder as a source of kind `folder`"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Fetched:
    """What a source gave: the files, the exact revision, and the license that the source states (or "")."""

    files: list[Blob]
    revision: str
    license: str


def looked_into(folder: Path, file: str) -> list[Path]:
    """The folders that the files may be in: the source's own and, with `source.file`, the one that it names."""
    below = [(folder / file).parent, folder / file] if file else []
    return [each for each in dict.fromkeys((folder, *below)) if each.is_dir()]


def collect(names: Iterable[str], where: Holder, file: str, get: Callable[[str], Blob]) -> list[Blob]:
    """The model's files out of a place that holds `names`, each fetched by `get`; `file` as in `choose`.

    Raises WeightsError as `choose`, and if an index of tensor files is damaged.
    """
    waiting, files = choose(names, where, file), []
    while waiting:
        name = waiting.pop(0)
        files.append(get(name))
        if files[-1].name == INDEX:
            waiting += [name.removesuffix(INDEX) + shard for shard in shards(files[-1].path, where)]
    return files


def choose(names: Iterable[str], where: Holder, file: str = "") -> list[str]:
    """The files to take: one GGUF, or config.json with safetensors (or their index) and the tokenizer.

    `file` is a .gguf or .safetensors file, or a folder, among the paths `names`; empty for their top folder. Of a
    file that comes in parts, all parts are taken. Raises WeightsError if there is no such file, if there are only
    pickled weights, several weights to choose from, none at all, or if a part is missing.
    """
    names = sorted(names)
    folder, chosen = _located(names, where, file)
    if folder:
        where = replace(where, name=f"{folder.rstrip('/')} in {where}")
    there = [name.removeprefix(folder) for name in names if name.startswith(folder)]
    return [folder + name for name in _chosen([name for name in there if "/" not in name], chosen, where)]


def _located(names: list[str], where: Holder, file: str) -> tuple[str, str]:
    """The folder that `file` stands for, with a slash at its end, and the name in it; each empty if not given."""
    if not file:
        return "", ""
    if file in names:
        folder, slash, name = file.rpartition("/")
        if not name.endswith((".gguf", ".safetensors")):
            raise WeightsError(
                f"source.file is {file}; give a .gguf or .safetensors file or a folder with config.json inside {where}"
            )
        return folder + slash, name
    folder = file.rstrip("/") + "/"
    if not any(name.startswith(folder) for name in names):
        likely = [name for name in names if name.endswith((".gguf", ".safetensors", *PICKLED))]
        raise WeightsError(f"{where} holds no {file}, but {_listed(likely or names)}; correct source.file")
    return folder, ""


def _chosen(there: list[str], chosen: str, where: Holder) -> list[str]:
    """The files of one folder to take; `chosen` is the one of them that was asked for, or empty."""
    if chosen.endswith(".gguf"):
        return _parts(chosen, there, where)
    tensors = [chosen] if chosen else [name for name in (WHOLE, INDEX) if name in there][:1]
    if not tensors:
        ggufs = _wholes(there, ".gguf")
        if len(ggufs) == 1:
            return _parts(ggufs[0], there, where)
        if ggufs:
            raise WeightsError(
                f"{where} holds {len(ggufs)} GGUF files ({_listed(ggufs)}); choose one of them with source.file"
            )
        if ADAPTER in there:
            raise WeightsError(
                f"{where} holds an adapter ({ADAPTER}), which is no model without its base; merge the two, as PEFT's "
                f"merge_and_unload does, and give the merged model"
            )
        tensors = [name for name in _wholes(there, ".safetensors") if PART.fullmatch(name)]
    if not tensors:
        if others := _wholes(there, ".safetensors"):
            raise WeightsError(
                f"{where} holds neither {WHOLE} nor {INDEX}, but {_listed(others)}; choose one with source.file"
            )
        if pickled := [name for name in there if name.endswith(PICKLED)]:
            raise WeightsError(
                f"{where} holds its weights only as {_listed(pickled)}, a format that can run code when it is opened, "
                f"so it is refused; choose a revision that has {WHOLE}, or convert them in a folder"
            )
        raise WeightsError(
            f"{where} holds neither {WHOLE} nor {INDEX} nor a .gguf file, but {_listed(there)}; choose a "
            "source that has one of them"
        )
    if len(tensors) > 1:
        raise WeightsError(
            f"{where} holds parts of {len(tensors)} models ({_listed(tensors)}) and no {INDEX}; choose one with "
            "source.file"
        )
    if tensors[0] not in (WHOLE, INDEX):
        tensors = _parts(tensors[0], there, where)
    if "config.json" not in there:
        raise WeightsError(
            f"{where} holds {tensors[0]} but no config.json; {where.add('the config.json of the model')}"
        )
    if "tokenizer.json" in there:
        tokenizer = ["tokenizer.json"]
    elif {"vocab.json", "merges.txt"} <= set(there):
        tokenizer = ["merges.txt", "vocab.json"]
    else:
        raise WeightsError(
            f"{where} holds no tokenizer.json, nor vocab.json and merges.txt; "
            f"{where.add('the tokenizer.json of the model')}"
        )
    settings = [name for name in stated_tokens.FILES if name in there]
    return ["config.json", *tensors, *tokenizer, *settings]


def _wholes(there: list[str], ending: str) -> list[str]:
    """The files of one ending; of a file that comes in parts, the first of those that are there."""
    stems: dict[str, str] = {}
    for name in there:
        if name.endswith(ending):
            part = PART.fullmatch(name)
            stems.setdefault(f"{part[1]} of {part[3]}" if part else name, name)
    return list(stems.values())


def _parts(name: str, there: list[str], where: Holder) -> list[str]:
    """All parts of the file that `name` is, or is one part of. Raises WeightsError if one is missing."""
    if (part := PART.fullmatch(name)) is None:
        return [name]
    stem, _, count, ending = part.groups()
    names = [f"{stem}-{number:05}-of-{count}{ending}" for number in range(1, int(count) + 1)]
    if missing := [each for each in names if each not in there]:
        raise WeightsError(f"{where} lacks {missing[0]}, one of {int(count)} parts of a file; {where.add('that part')}")
    return names


def shards(index: Path, where: Holder) -> list[str]:
    """The tensor files that an index names. Raises WeightsError if the index is damaged."""
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8-sig"))["weight_map"].values()))
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
