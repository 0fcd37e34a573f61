"""Every scheme, simulated and where a kernel exists packed, against the float32 model: answers and bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from tokentrail import tables
from tokentrail.errors import NotFiniteError, OutOfRangeError, QuantizationError
from tokentrail.forward.frame import Model, forward, last
from tokentrail.measure.answers import Answer, answer, kl
from tokentrail.measure.bootstrap import interval
from tokentrail.measure.overflow import overflow
from tokentrail.measure.passages import Expected, Passage, Reading, expected, open_passage, read
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.measure.quantization_cases import Case, cases, in_words, method
from tokentrail.quantize.packed import model_refusal, read_packed, write_packed
from tokentrail.quantize.payload import model_payload
from tokentrail.quantize.simulate import Simulation
from tokentrail.weights.load import Loaded, load_model

SAME = 1e-4  # of the largest logit: float32 rounding stays ten times below, a wrong code or scale lies far above
NOT_PACKED = {"stored_bytes": None, "parity_float32": None, "parity_bfloat16": None}
UNQUANTIZED = {
    "bits": None,
    "group_size": None,
    "families": "",
    "execution": "unquantized",
    "detail": "",
    "method": "",
    "note": "",
}


@dataclass(frozen=True)
class Reference:
    """What the float32 model says of everything that the schemes are compared on."""

    prompt: Encoded
    said: Answer
    passages: list[tuple[Passage, Expected]]


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `quantization_quality`. `loaded` holds plain weights; they are written over, and are nobody else's."""
    if not settings["schemes"]:
        return tables.frame("quantization_quality", [])
    spec = loaded.model.spec
    whole = model_payload(spec)
    against = reference(loaded, settings)

    def rows(model: Model | None, payload: int, **about) -> list[dict[str, Any]]:
        sizes = {"payload_bytes": payload, "compression": whole / payload}
        try:
            said = [] if model is None else list(compared(model, loaded, against, settings["bootstrap"]))
        except NotFiniteError as error:
            said, about["note"] = [], f"{error} ({overflow(model, against.prompt.ids)} on {against.prompt.name})"
        if not said:
            said, about["execution"] = [unanswered(loaded, against)], "not run"
        return [NOT_PACKED | sizes | about | row for row in said]

    found = [*rows(loaded.model, whole, scheme="float32", **UNQUANTIZED)]
    half = load_model(loaded.checkpoint, torch.bfloat16, loaded.device)
    found += rows(half, whole // 2, scheme="bfloat16", **UNQUANTIZED)
    del half
    simulation = Simulation(loaded.model, loaded.checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(spec, settings["schemes"]):
            print(f"{case.name}: {case.families}", flush=True)
            payload = model_payload(spec, case.scheme, case.tensors)
            about = case.about | {
                "detail": in_words(case.scheme),
                "method": method(case.scheme),
                "families": case.families,
            }
            why = model_refusal(loaded.checkpoint, case.scheme, case.tensors, loaded.device) if case.packed else ""
            simulated = None
            try:
                simulated = simulation.apply(case.scheme, case.tensors)
            except OutOfRangeError as error:
                why = str(error)
            found += rows(simulated, payload, execution="simulated", note=why, **about)
            if case.packed and found[-1]["execution"] == "simulated" and not why:
                path = Path(folder, "packed.safetensors")
                write_packed(loaded.checkpoint, case.scheme, case.tensors, path)
                packed, exact = read_packed(path), read_packed(path, torch.float32)
                about |= parity(packed, exact, simulated, against.prompt, case)
                found += rows(
                    packed, payload, execution="packed", note="", **about | {"stored_bytes": path.stat().st_size}
                )
                path.unlink()
    return tables.frame("quantization_quality", found, model=settings["model"], level=settings["bootstrap"]["level"])


def parity(packed: Model, exact: Model, simulated: Model, prompt: Encoded, case: Case) -> dict[str, float]:
    """How far the packed file's logits are from those of the simulated model with the same codes.

    `exact` is the packed file run in float32. Raises QuantizationError if it differs by more than rounding.
    """
    expected_logits = forward(simulated, prompt.ids)
    largest = expected_logits.abs().max().item()
    apart = (forward(exact, prompt.ids[:, :1]) - expected_logits[:, :1]).abs().max().item()
    if not apart <= SAME * largest:
        raise QuantizationError(
            f"packed and simulated {case.name} ({case.families}) differ by {apart:.3g} in a logit, the largest being "
            f"{largest:.3g}; the packed file does not hold what was simulated"
        )
    as_run = (forward(packed, prompt.ids) - expected_logits).abs().max().item()
    return {"parity_float32": apart, "parity_bfloat16": as_run}


def reference(loaded: Loaded, settings: dict[str, Any]) -> Reference:
    (prompt,) = encoded(loaded, settings)
    passages = [open_passage(loaded, name, path, settings["window"]) for name, path in settings["passages"].items()]
    return Reference(
        prompt,
        answer(forward(loaded.model, prompt.ids, read=last(prompt.ids))[0, 0], prompt.target),
        [(passage, expected(loaded.model, passage)) for passage in passages],
    )


def compared(model: Model, loaded: Loaded, against: Reference, bootstrap: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each passage, or one row without a passage: the prompt's answer, and what the passage says."""
    prompt = against.prompt
    said = answer(forward(model, prompt.ids, read=last(prompt.ids))[0, 0], prompt.target)
    answered = {
        "prompt": prompt.name,
        "kl": kl(against.said.log_p, said.log_p),
        "top1_token": loaded.tokenizer.token(said.top1),
        "top1_probability": said.top1_probability,
        "target_probability": said.target_probability,
        "target_rank": said.target_rank,
        "bos_policy": loaded.tokenizer.bos_policy,
    }
    for passage, beside in against.passages:
        reading = read(model, passage, beside)
        yield answered | {"passage": passage.name, "positions": len(reading.nll)} | summary(reading, bootstrap)
    if not against.passages:
        yield answered | {"passage": "", "positions": None} | dict.fromkeys(quantities())


def unanswered(loaded: Loaded, against: Reference) -> dict[str, Any]:
    """What stands in the row of a scheme that gives this model no answers."""
    answers = dict.fromkeys(("kl", "top1_probability", "target_probability", "target_rank"))
    about = {"prompt": against.prompt.name, "top1_token": "", "bos_policy": loaded.tokenizer.bos_policy}
    return about | answers | {"passage": "", "positions": None} | dict.fromkeys(quantities())


def quantities() -> list[str]:
    return [f"{name}{end}" for name in ("perplexity", "mean_kl", "top1_agreement") for end in ("", "_low", "_high")]


def summary(reading: Reading, bootstrap: dict[str, Any]) -> dict[str, float]:
    """Means over positions, each with its interval; perplexity is the exponential of the mean nll."""
    means = [(float(units.mean()), *interval(units, **bootstrap)) for units in reading]
    nll, divergence, agreement = means
    values = [*(float(np.exp(x)) for x in nll), *divergence, *agreement]
    return dict(zip(quantities(), values, strict=True))
