"""How well a reference model copies names: wording and filler that it never saw, names that it saw and that it did not.

Each case is a prompt of the published kind: a head with the name in it, filler, a tail that asks for the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch

from tokentrail.forward.frame import forward, last
from tokentrail.measure.answers import answer
from tokentrail.stages.filler.distance import Stretched, stretched
from tokentrail.stages.filler.filler_sweep import taps
from tokentrail.training.text import Parts, Writer
from tokentrail.weights.load import Loaded

RECEIVER = "Bob"  # as in the published sentence; every case asks for the other person


@torch.inference_mode()
def measure(loaded: Loaded, parts: Parts, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `evaluation`: every case as trained, and with all attention off where a model has attention."""
    rows = []
    variants = taps(loaded.model.spec)
    for about, case in cases(loaded, parts, settings):
        for variant, tap in variants.items():
            logits = forward(loaded.model, case.ids, tap=tap, read=last(case.ids))[0, 0]
            said = answer(logits, case.target)
            rows.append(
                about
                | case.about
                | {
                    "variant": variant,
                    "target_probability": said.target_probability,
                    "target_rank": said.target_rank,
                    "top1_token": loaded.tokenizer.token(said.top1),
                }
            )
    return pl.DataFrame(rows).with_columns(model=pl.lit(settings["model"]))


def cases(loaded: Loaded, parts: Parts, settings: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Stretched]]:
    """Every name at every distance that the model has positions for; the rest of the wording is drawn from the seed."""
    writer = Writer(parts, settings["seed"], count=len)
    for kind, names in (("seen", parts.raw["names"]["common"]), ("held_out", parts.raw["names"]["held_out"])):
        chosen = [name for name in names if name != RECEIVER][: settings["names"]]
        for filler, paragraph in parts.raw["fillers"]["held_out"].items():
            for repeats in settings["repeats"]:
                for name in chosen:
                    case = stretched(loaded, wording(writer, name), filler, paragraph, repeats)
                    if case.fits:
                        yield {"names": kind, "name": name, "pieces": len(case.name)}, case


def wording(writer: Writer, name: str) -> dict[str, str]:
    """A head and a tail of a pair that is held out, and the name that the tail asks for."""
    template = writer.rng.choice(writer.parts.held_out_templates)
    thing = writer.rng.choice(writer.raw["objects"])
    people = {"a": name, "b": RECEIVER}
    return {
        "head": writer.head(template, people, thing),
        "tail": writer.tail(template, people, thing),
        "target": f" {name}",
    }
