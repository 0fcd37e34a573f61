"""Is the name in the sentence copied? Every template with every name, in padded batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import torch

from tokentrail import tables
from tokentrail.forward.frame import forward
from tokentrail.measure.answers import log_probabilities, rank
from tokentrail.measure.asked import asked
from tokentrail.measure.notes import log_notes
from tokentrail.measure.prompts import check_fits
from tokentrail.weights.load import Loaded


@dataclass(frozen=True)
class Row:
    set: str
    template: str
    name: str
    ids: list[int]  # the prompt, then all pieces of the name but the last
    pieces: list[int]  # the name as it is cut at the end of the prompt

    @property
    def reads(self) -> list[int]:
        """Positions whose next token is a piece of the name."""
        return list(range(len(self.ids) - len(self.pieces), len(self.ids)))


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `name_swaps`, in the order of the settings."""
    rows: list[Row] = []
    refused: list[dict[str, Any]] = []
    for set_name, swap in settings["sets"].items():
        for template, text in swap["templates"].items():
            for name in swap["names"]:
                with asked(refused, set=set_name, template=template, name=name):
                    rows.append(row_of(loaded, set_name, template, text, name))
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))  # little padding in a batch
    found: dict[int, dict] = {}
    for start in range(0, len(rows), settings["batch"]):
        some = by_length[start : start + settings["batch"]]
        found |= zip(some, answers(loaded, [rows[i] for i in some]), strict=True)
    return tables.frame("name_swaps", [found[i] for i in range(len(rows))], refused, model=settings["model"])


def row_of(loaded: Loaded, set_name: str, template: str, text: str, name: str) -> Row:
    prompt = text.replace("{name}", name)
    pieces = loaded.tokenizer.following(prompt, f" {name}")
    ids = loaded.tokenizer.encode(prompt) + pieces[:-1]
    check_fits(loaded, f"{set_name}/{template} with {name}", len(ids))
    log_notes(
        loaded.tokenizer, loaded.model.spec.trained_positions, f"{set_name}/{template} with {name}", prompt, f" {name}"
    )
    return Row(set_name, template, name, ids, pieces)


def answers(loaded: Loaded, rows: list[Row]) -> list[dict[str, Any]]:
    """One batch, padded on the right."""
    longest, most = max(len(r.ids) for r in rows), max(len(r.pieces) for r in rows)
    ids = torch.tensor([r.ids + [0] * (longest - len(r.ids)) for r in rows], device=loaded.device)
    lengths = torch.tensor([len(r.ids) for r in rows], device=loaded.device)
    reads = torch.tensor([r.reads + [r.reads[-1]] * (most - len(r.pieces)) for r in rows], device=loaded.device)
    log_p = log_probabilities(forward(loaded.model, ids, lengths=lengths, read=reads))  # (rows, pieces, vocabulary)
    return [answer(loaded, row, log_p[i]) for i, row in enumerate(rows)]


def answer(loaded: Loaded, row: Row, log_p: torch.Tensor) -> dict[str, Any]:
    """log_p (pieces or more, vocabulary): one row for each piece of the name."""
    first, target = log_p[0], row.pieces[0]
    top1 = int(first.argmax())
    return {
        "set": row.set,
        "template": row.template,
        "name": row.name,
        "target_token": loaded.tokenizer.token(target),
        "pieces": len(row.pieces),
        "probability": first[target].exp().item(),
        "rank": rank(first, target),
        "top1_token": loaded.tokenizer.token(top1),
        "top1_probability": first[top1].exp().item(),
        "name_nll": -sum(log_p[i, piece].item() for i, piece in enumerate(row.pieces)),
    }
