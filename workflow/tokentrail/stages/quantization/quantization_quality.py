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
from tokentrail.errors import NotFiniteError, OutOfRangeError, PromptError, QuantizationError
from tokentrail.forward.frame import Model, forward, last
from tokentrail.measure.answers import Answer, answer, kl
from tokentrail.measure.bootstrap import interval
from tokentrail.measure.overflow import overflow
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.quantize.packed import model_refusal, read_packed, write_packed
from tokentrail.quantize.payload import model_payload
from tokentrail.quantize.simulate import Simulation
from tokentrail.stages.quantization.cases import Case, cases, in_words, method
from tokentrail.stages.quantization.passages import Expected, Passage, Reading, expected, open_passage, read, unreadable
from tokentrail.stages.quantization.weights import in_bfloat16, stored_dtypes, together
from tokentrail.weights.load import Loaded, load_model

SAME = 1e-4  # of the largest logit: float32 rounding stays ten times below, a wrong code or scale lies far above
UNMOVED = {"weight_error": None, "on_codes": None}
NOT_PACKED = {"stored_bytes": None, "parity_float32": None, "parity_bfloat16": None}
UNQUANTIZED = {
    "bits": None,
    "group_size": None,
    "families": "",
    "execution": "unquantized",
    "detail": "",
    "method": "",
}
QUANTITIES = [f"{name}{end}" for name in ("perplexity", "mean_kl", "top1_agreement") for end in ("", "_low", "_high")]
ON_PASSAGE = ("positions", *QUANTITIES)
ON_PROMPT = ("kl", "top1_token", "top1_probability", "target_probability", "target_rank")


@dataclass(frozen=True)
class Reference:
    """What the float32 model says of everything that the schemes are compared on."""

    prompt: Encoded
    said: Answer
    passages: list[tuple[Passage, Expected]]
    """Those that the model can read."""
    unread: dict[str, str]
    """The others by name, each with the reason."""


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `quantization_quality`. `loaded` holds plain weights; they are written over, and are nobody else's."""
    if not settings["schemes"]:
        return tables.frame("quantization_quality", [])
    spec = loaded.model.spec
    prompts, refused = encoded(loaded, settings)
    if not prompts:
        return tables.frame("quantization_quality", [], refused, model=settings["model"])
    whole, checkpoint = model_payload(spec), loaded.checkpoint
    against = reference(loaded, prompts[0], settings)

    def rows(model: Model, payload: int, **about) -> list[dict[str, Any]]:
        try:
            said = list(compared(model, loaded, against, settings["bootstrap"]))
        except NotFiniteError as error:
            where = f"{overflow(model, against.prompt.ids)} on {against.prompt.name}"
            return [skipped(payload, "", f"{error} ({where})", **about)]
        return [sized(payload) | about | row | {"status": "ok", "reason": ""} for row in said]

    def skipped(payload: int, passage: str, reason: str, **about) -> dict[str, Any]:
        asked = {"prompt": against.prompt.name, "passage": passage, "bos_policy": loaded.tokenizer.bos_policy}
        return (
            dict.fromkeys((*ON_PROMPT, *ON_PASSAGE))
            | sized(payload)
            | about
            | asked
            | {"status": "skipped", "reason": reason}
        )

    def sized(payload: int) -> dict[str, Any]:
        return NOT_PACKED | {"payload_bytes": payload, "compression": whole / payload}

    as_it_is = UNQUANTIZED | {"stored_dtypes": stored_dtypes(checkpoint)}
    plain = as_it_is | {"scheme": "float32", "weight_error": 0.0, "on_codes": None}
    found = [*rows(loaded.model, whole, **plain)]
    found += (skipped(whole, passage, reason, **plain) for passage, reason in against.unread.items())
    half = load_model(checkpoint, torch.bfloat16, loaded.device)
    found += rows(half, whole // 2, scheme="bfloat16", **as_it_is | together(in_bfloat16(checkpoint)))
    del half
    simulation = Simulation(loaded.model, checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(spec, settings["schemes"]):
            print(f"{case.name}: {case.families}", flush=True)
            payload = model_payload(spec, case.scheme, case.tensors)
            about = case.about | {
                "detail": in_words(case.scheme),
                "method": method(case.scheme),
                "families": case.families,
                "stored_dtypes": stored_dtypes(checkpoint, case.tensors),
            }
            try:
                simulated = simulation.apply(case.scheme, case.tensors)
            except OutOfRangeError as error:
                found.append(skipped(payload, "", str(error), execution="simulated", **about | UNMOVED))
                continue
            about |= together(simulation.moved.values())
            found += rows(simulated, payload, execution="simulated", **about)
            if not case.packed or found[-1]["status"] == "skipped":
                continue
            about |= {"execution": "packed"}
            if why := model_refusal(checkpoint, case.scheme, case.tensors, loaded.device):
                found.append(skipped(payload, "", why, **about))
            else:
                path = Path(folder, "packed.safetensors")
                write_packed(checkpoint, case.scheme, case.tensors, path)
                packed, exact = read_packed(path), read_packed(path, torch.float32)
                about |= parity(packed, exact, simulated, against.prompt, case)
                found += rows(packed, payload, **about | {"stored_bytes": path.stat().st_size})
                path.unlink()
    same = {"model": settings["model"], "level": settings["bootstrap"]["level"]}
    return tables.frame("quantization_quality", found, refused, **same)


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


def reference(loaded: Loaded, prompt: Encoded, settings: dict[str, Any]) -> Reference:
    passages, unread = [], {}
    for name, path in settings["passages"].items():
        try:
            passage = open_passage(loaded, name, path, settings["window"])
        except PromptError as error:
            unread[name] = str(error)
            continue
        says = expected(loaded.model, passage)
        nll = read(loaded.model, passage, says).nll.mean()
        if why := unreadable(settings["model"], name, nll, loaded.model.spec.vocabulary):
            print(why, flush=True)
            unread[name] = why
        else:
            passages.append((passage, says))
    said = answer(forward(loaded.model, prompt.ids, read=last(prompt.ids))[0, 0], prompt.target)
    return Reference(prompt, said, passages, unread)


def compared(model: Model, loaded: Loaded, against: Reference, bootstrap: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each passage that can be read, or one without: the prompt's answer, and what the passage says."""
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
        yield answered | {"passage": ""} | dict.fromkeys(ON_PASSAGE)


def summary(reading: Reading, bootstrap: dict[str, Any]) -> dict[str, float]:
    """Means over positions, each with its interval; perplexity is the exponential of the mean nll."""
    means = [(float(units.mean()), *interval(units, **bootstrap)) for units in reading]
    nll, divergence, agreement = means
    values = [*(float(np.exp(x)) for x in nll), *divergence, *agreement]
    return dict(zip(QUANTITIES, values, strict=True))
