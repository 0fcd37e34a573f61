"""Wall-clock times of decode, batched decode and prefill, beside the machine's limits in the same rounds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl
import torch
from torch import Tensor

from tokentrail.forward.cache import formula_bytes
from tokentrail.intervene.plan import bytes_per_row
from tokentrail.measure.limits import array_read, matrix_product, seconds
from tokentrail.measure.rounds import Prepare
from tokentrail.measure.timed_model import Ours, random_ids
from tokentrail.measure.work import Work, work
from tokentrail.weights.load import Loaded

BLOCKS = 2  # the second repeats the first, so that a drift of the machine shows


class Contender(Protocol):
    """An implementation of the model, as it is timed."""

    name: str
    cannot: str
    """Why it cannot run this model; empty if it can."""

    def decode(self, ids: Tensor, steps: int) -> Prepare:
        """`steps` decode steps after ids (rows, tokens), which are read into a cache once, beforehand."""

    def prefill(self, ids: Tensor) -> Prepare:
        """One pass over ids (rows, tokens) into an empty cache, with the logits of the last position."""


@dataclass(frozen=True)
class Case:
    """One thing to time, or the reason why it is not."""

    implementation: str
    kind: str
    context: int
    batch: int
    calls: int
    work: Work
    prepare: Prepare | None
    reason: str = ""


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `timing`: every case once for warming up, then in every round, in a shuffled order."""
    if settings["threads"] is not None:
        torch.set_num_threads(settings["threads"])
    cases = [*limits(loaded.device), *model_cases(loaded, settings)]
    run = [case for case in cases if case.prepare is not None]
    for case in run:
        case.prepare()()
    rows = [row(case, 0, 0, 0, None) for case in cases if case.prepare is None]
    order = random.Random(settings["seed"])
    for block in range(BLOCKS):
        for number in range(settings["rounds"]):
            print(f"block {block + 1} of {BLOCKS}, round {number + 1} of {settings['rounds']}", flush=True)
            for place, case in enumerate(order.sample(run, len(run))):
                rows.append(row(case, block, number, place, seconds(case.prepare(), loaded.device)))
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        model=pl.lit(settings["model"]), threads=pl.lit(torch.get_num_threads(), dtype=pl.Int64)
    )


def row(case: Case, block: int, number: int, place: int, took: float | None) -> dict[str, Any]:
    return {
        "implementation": case.implementation,
        "kind": case.kind,
        "context": case.context,
        "batch": case.batch,
        "block": block,
        "round": number,
        "place": place,
        "calls": case.calls,
        "seconds": took,
        **case.work._asdict(),
        "status": "skipped" if case.reason else "ok",
        "reason": case.reason,
    }


def limits(device: torch.device) -> Iterator[Case]:
    product, operations = matrix_product(device)
    read, size = array_read(device)
    yield Case("machine", "matrix_peak", 0, 0, 1, Work(operations, 0, 0), lambda: product)
    yield Case("machine", "read_bandwidth", 0, 0, 1, Work(0, 0, size), lambda: read)


def model_cases(loaded: Loaded, settings: dict[str, Any]) -> Iterator[Case]:
    asked = [("decode", context, 1) for context in settings["decode_contexts"]]
    asked += [("batch", settings["batch_context"], rows) for rows in settings["batches"]]
    asked += [("prefill", tokens, 1) for tokens in settings["prefill_lengths"]]
    for contender in contenders(loaded, settings["peers"]):
        for kind, context, rows in asked:
            yield case_of(contender, loaded, kind, context, rows, settings)


def contenders(loaded: Loaded, peers: list[str]) -> Iterator[Contender]:
    yield Ours(loaded.model)
    if peers:
        from tokentrail.measure.reference import Transformers, open_reference

        reference = open_reference(loaded.checkpoint, loaded.device)
        yield from (Transformers(reference, attention) for attention in peers)


def case_of(contender: Contender, loaded: Loaded, kind: str, context: int, rows: int, settings: dict[str, Any]) -> Case:
    spec, itemsize = loaded.model.spec, loaded.model.tokens.element_size()
    prefill = kind == "prefill"
    steps = 0 if prefill else settings["steps"]
    needed = work(spec, rows, 0 if prefill else context, context if prefill else 1, itemsize)
    reason = contender.cannot or why_not(loaded, context + steps, rows, settings["memory_mb"])
    prepare = None
    if not reason:
        ids = random_ids(spec.vocabulary, rows, context).to(loaded.device)
        prepare = contender.prefill(ids) if prefill else contender.decode(ids, steps)
    return Case(contender.name, kind, context, rows, max(steps, 1), needed, prepare, reason)


def why_not(loaded: Loaded, tokens: int, rows: int, memory_mb: int) -> str:
    """Why `rows` sequences of `tokens` tokens cannot be timed; empty if they can."""
    spec, itemsize = loaded.model.spec, loaded.model.tokens.element_size()
    room = spec.learned_positions
    if room is not None and tokens > room:
        return f"{tokens} tokens, but the model has {room} positions"
    needed = rows * (bytes_per_row(spec, tokens, pattern=False, itemsize=itemsize))
    needed += rows * formula_bytes(spec, tokens, itemsize).total
    if needed > memory_mb << 20:
        return f"{rows} rows of {tokens} tokens need {(needed >> 20) + 1} MiB, but memory_mb is {memory_mb}"
    return ""
