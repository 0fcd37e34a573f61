"""Switching parts off: every mixer, FFN and head alone, and named sets, each by zero, mean and resample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.errors import PromptError
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import Record
from tokentrail.intervene.branching import run
from tokentrail.intervene.interventions import Intervention, Operation, Variant
from tokentrail.measure.answers import Answer, answer, kl
from tokentrail.measure.asked import asked
from tokentrail.measure.prompts import Encoded, check_equal_length, check_fits, encoded
from tokentrail.weights.load import Loaded

# A mixer is switched off in `z`, where its output projection reads it, so that a bias of that projection stays.
SITE = {"mixer": "z", "head": "z", "ffn": "ffn_out"}


@dataclass(frozen=True)
class Part:
    """What one row of the table switches off."""

    component: str
    kind: str  # mixer, head or ffn
    mixer: str  # attention or mamba2; empty for FFNs
    layers: tuple[int, ...]
    head: int | None = None

    def variant(self, operation: Operation) -> Variant:
        heads = None if self.head is None else (self.head,)
        name = f"{operation.kind} of {self.component} at {specs.layer_ranges(list(self.layers))}"
        return Variant(name, (Intervention(SITE[self.kind], self.layers, operation, heads),))


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `ablations`.

    An operation that cannot be done on a prompt, as resampling from one of another length, has a row with the reason.
    Raises InterventionError or ConfigError as `intervene.branching.run` does.
    """
    prompts, refused = encoded(loaded, settings)
    by_prompt = [(prompt, operations(loaded, prompt, settings, refused)) for prompt in prompts]
    parts = list(all_parts(loaded.model.spec))
    rows = [
        row
        for prompt, chosen in by_prompt
        for row in ablate(loaded, prompt, parts, chosen, settings["memory_mb"] << 20)
    ]
    return tables.frame("ablations", rows, refused, model=settings["model"])


def all_parts(spec: specs.Spec) -> Iterator[Part]:
    kinds = [specs.kind_of(layer.mixer) for layer in spec.layers]
    for i, layer in enumerate(spec.layers):
        for sub in layer.sublayers:
            kind, mixer = ("mixer", kinds[i]) if sub.cell.mixes else ("ffn", "")
            yield Part(kind, kind, mixer, (i,))
    for i, kind in enumerate(kinds):
        for head in range(spec.layers[i].mixer.heads):
            yield Part("head", "head", kind, (i,), head)
    for kind in dict.fromkeys(kinds):
        yield Part(f"all {kind}", "mixer", kind, tuple(i for i, k in enumerate(kinds) if k == kind))
    mamba2 = [i for i, kind in enumerate(kinds) if kind == "mamba2"]
    for k, start in enumerate(mamba2):
        yield Part(f"mamba2 from layer {start}", "mixer", "mamba2", tuple(mamba2[k:]))


def operations(
    loaded: Loaded, prompt: Encoded, settings: dict[str, Any], refused: list[dict[str, Any]]
) -> list[Operation]:
    """The operations of the settings, with the values that they put in place for this prompt."""
    out = []
    for kind in settings["operations"]:
        with asked(refused, prompt=prompt.name, operation=kind):
            match kind:
                case "zero":
                    out.append(Operation("zero"))
                case "mean":
                    ids = [ids_of(loaded, name, settings["texts"][name]) for name in settings["references"]]
                    out.append(Operation("mean", values=means(loaded, ids)))
                case "resample" if prompt.name in settings["resample_from"]:
                    source = settings["resample_from"][prompt.name]
                    ids = ids_of(loaded, source, settings["texts"][source])
                    check_equal_length(loaded, prompt.name, prompt.ids, source, ids)
                    out.append(Operation("resample", values=recorded(loaded, ids)))
    return out


def ids_of(loaded: Loaded, name: str, text: str) -> Tensor:
    ids = loaded.tokenizer.encode(text)
    check_fits(loaded, name, len(ids))
    return torch.tensor([ids], device=loaded.device)


def recorded(loaded: Loaded, ids: Tensor) -> dict[tuple[str, int], Tensor]:
    """What every mixer and FFN gives on ids (1, tokens): by site and layer, without the row axis."""
    record = Record(*set(SITE.values()), keep=lambda x: x[0])
    forward(loaded.model, ids, tap=record)
    return record.seen


def means(loaded: Loaded, ids: list[Tensor]) -> dict[tuple[str, int], Tensor]:
    """The mean over all positions of all prompts but each first one, whose values are unlike any other's."""
    runs = [recorded(loaded, one) for one in ids if one.shape[1] > 1]
    if not runs:
        raise PromptError("the mean needs a reference prompt of two tokens or more; name one in references")
    # Positions stand second from last in z (heads, tokens, head_dim) and in ffn_out (tokens, width).
    return {key: torch.cat([r[key][..., 1:, :] for r in runs], dim=-2).mean(dim=-2, keepdim=True) for key in runs[0]}


def ablate(
    loaded: Loaded, prompt: Encoded, parts: list[Part], chosen: list[Operation], memory: int
) -> Iterator[dict[str, Any]]:
    planned = [(part, operation) for operation in chosen for part in parts]
    variants = [part.variant(operation) for part, operation in planned]
    branched = run(loaded.model, prompt.ids, variants, memory)
    clean = answer(branched.clean, prompt.target)
    nothing = Part("clean", "", "", ())
    yield row(loaded, prompt, clean, clean, nothing, "none", 0, 0)
    for (part, operation), variant, logits, applied in zip(
        planned, variants, branched.logits, branched.applied, strict=True
    ):
        said = answer(logits, prompt.target)
        yield row(loaded, prompt, clean, said, part, operation.kind, variant.planned, applied)


def row(
    loaded: Loaded, prompt: Encoded, clean: Answer, said: Answer, part: Part, operation: str, planned: int, applied: int
) -> dict[str, Any]:
    return {
        "prompt": prompt.name,
        "component": part.component,
        "mixer": part.mixer,
        "layers": specs.layer_ranges(list(part.layers)),
        "heads": "" if part.head is None else str(part.head),
        "operation": operation,
        "target_probability": said.target_probability,
        "target_rank": said.target_rank,
        "top1_token": loaded.tokenizer.token(said.top1),
        "top1_probability": said.top1_probability,
        "kl": kl(clean.log_p, said.log_p),
        "planned_edits": planned,
        "applied_edits": applied,
    }
