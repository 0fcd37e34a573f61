"""Packed schemes beside float32 and bfloat16: decode, prefill and resident memory, in the same rounds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.allocator import give_back
from tokentrail.errors import PromptError
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import Model, forward
from tokentrail.measure.asked import asked
from tokentrail.measure.median import median_of
from tokentrail.measure.rounds import Prepare, shuffled
from tokentrail.measure.timed_model import Ours, random_ids
from tokentrail.quantize.packed import model_refusal, read_packed, write_packed
from tokentrail.stages.quantization.cases import cases
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import load_model, usable_device


@torch.inference_mode()
def measure(checkpoint: Checkpoint, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `quantization_timing`. Schemes that no kernel here runs have no row; `quantization_quality` says why."""
    device, spec = usable_device(settings["device"]), read_spec(checkpoint.config)
    run = [
        case
        for case in cases(spec, settings["schemes"])
        if not model_refusal(checkpoint, case.scheme, case.tensors, device)
    ]
    if not run:
        return tables.frame("quantization_timing", [])
    refused: list[dict[str, Any]] = []
    for case in run:
        with asked(refused, scheme=case.name, families=case.families):
            check_positions(spec.learned_positions, settings)
    if refused:
        return tables.frame("quantization_timing", [], refused, model=settings["model"])
    with tempfile.TemporaryDirectory() as folder:
        loads: dict[tuple[str, str], Callable[[], Model]] = {}
        for number, case in enumerate(run):
            path = Path(folder, f"{number}.safetensors")
            write_packed(checkpoint, case.scheme, case.tensors, path)
            loads[case.name, case.families] = lambda path=path: read_packed(path)
        loads["bfloat16", ""] = lambda: load_model(checkpoint, torch.bfloat16, device)
        loads["float32", ""] = lambda: load_model(checkpoint, device=device)
        models, resident = {}, {}
        for key, load in loads.items():
            models[key], resident[key] = grown(load)
    ids = random_ids(spec.vocabulary, 1, max(settings["context"], settings["prefill"])).to(device)
    contexts = {"decode": ids[:, : settings["context"]], "prefill": ids[:, : settings["prefill"]]}
    print(f"{len(models)} models, {settings['rounds']} rounds", flush=True)
    times = shuffled(prepared(models, contexts, settings["steps"]), settings["rounds"], settings["seed"])
    rows = [
        {"scheme": scheme, "families": families, "resident_bytes": resident[scheme, families]}
        | milliseconds("decode", times["decode", scheme, families], settings["steps"])
        | milliseconds("prefill", times["prefill", scheme, families], 1)
        for scheme, families in reversed(list(loads))
    ]
    return tables.frame(
        "quantization_timing",
        rows,
        model=settings["model"],
        context=settings["context"],
        prefill_tokens=settings["prefill"],
        rounds=settings["rounds"],
        threads=torch.get_num_threads(),
    )


def check_positions(room: int | None, settings: dict[str, Any]) -> None:
    needed = max(settings["context"] + settings["steps"], settings["prefill"])
    if room is not None and needed > room:
        raise PromptError(
            f"stages.quantization.times asks for {needed} tokens, but {settings['model']} has {room} positions; "
            f"set a smaller context or prefill"
        )


def grown(load: Callable[[], Model]) -> tuple[Model, int]:
    """The model, and the bytes that this process grew by until it had read one token."""
    process = psutil.Process()
    give_back()
    before = process.memory_info().rss
    model = load()
    forward(model, torch.zeros(1, 1, dtype=torch.int64, device=model.final_norm.weight.device))
    give_back()
    return model, max(process.memory_info().rss - before, 0)


def prepared(
    models: dict[tuple[str, str], Model], contexts: dict[str, Tensor], steps: int
) -> dict[tuple[str, str, str], Prepare]:
    """The calls to be timed, by kind, scheme and families."""
    found = {}
    for (scheme, families), model in models.items():
        ours = Ours(model)
        found["decode", scheme, families] = ours.decode(contexts["decode"], steps)
        found["prefill", scheme, families] = ours.prefill(contexts["prefill"])
    return found


def milliseconds(kind: str, seconds: list[float], calls: int) -> dict[str, float]:
    """The median time of one call and its interval, and the interval's level."""
    taken = median_of([1000 * each / calls for each in seconds])
    ends = {f"{kind}_ms": taken.middle, f"{kind}_low_ms": taken.low, f"{kind}_high_ms": taken.high}
    return ends | {"level": taken.level}
