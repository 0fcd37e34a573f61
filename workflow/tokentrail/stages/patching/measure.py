"""Interchange: one value of a run is put in place in another, and what that restores is measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.errors import PromptError
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Record
from tokentrail.intervene.branching import run
from tokentrail.intervene.interventions import Intervention, Operation, Variant
from tokentrail.measure.asked import asked
from tokentrail.measure.prompts import Encoded, check_equal_length, encode
from tokentrail.weights.load import Loaded

TOLD_APART = 1e-3  # logits: below this the two prompts give the same answer and nothing can be restored


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `patching`: positions from the first that differs on; before it both runs are the same.

    A pair of unequal length, or one that the model does not tell apart, has a row with the reason.
    """
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for pair in settings["pairs"]:
        with asked(refused, prompt=pair["prompt"], source_prompt=pair["source"]):
            prompt, source = (encode(loaded, name, **settings["prompts"][name]) for name in pair.values())
            check_equal_length(loaded, prompt.name, prompt.ids, source.name, source.ids)
            rows += list(interchange(loaded, prompt, source, settings))
    return tables.frame("patching", rows, refused, model=settings["model"])


def interchange(loaded: Loaded, prompt: Encoded, source: Encoded, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Raises PromptError for two prompts that the model does not tell apart."""

    def difference(logits: Tensor) -> Tensor:
        """Logit of the source's target minus that of the prompt's, of logits (..., vocabulary)."""
        return logits[..., source.target].double() - logits[..., prompt.target].double()

    own, other = (difference(forward(loaded.model, p.ids, read=last(p.ids))[0, 0]) for p in (prompt, source))
    if abs(other - own) < TOLD_APART:
        raise PromptError(
            f"prompts {prompt.name} and {source.name} give {loaded.tokenizer.model} the same logit difference, so "
            f"there is nothing to restore; choose two prompts with different targets"
        )
    differs = (prompt.ids != source.ids)[0].nonzero()
    first, tokens = int(differs[0]), prompt.ids.shape[1]
    text = [loaded.tokenizer.token(token) for token in prompt.ids[0].tolist()]
    sites = list(edited(settings, loaded))
    patches = [(site, layer, p) for site, layers in sites for layer in layers for p in range(first, tokens)]
    patches = [patch for patch in patches if is_read(patch, tokens)]
    variants = list(map(variant_of, patches, sources(loaded, source, patches)))
    logits = run(loaded.model, prompt.ids, variants, settings["memory_mb"] << 20).logits
    for (site, layer, position), changed in zip(patches, logits, strict=True):
        yield {
            "prompt": prompt.name,
            "source_prompt": source.name,
            "site": site,
            "mixer": specs.kind_of(loaded.model.spec.layers[layer].mixer),
            "layer": layer,
            "position": position,
            "token": text[position],
            "recovered": ((difference(changed) - own) / (other - own)).item(),
        }


def edited(settings: dict[str, Any], loaded: Loaded) -> Iterator[tuple[str, list[int]]]:
    """Each site with the layers that have it."""
    for site in settings["sites"]:
        yield site, [i for i, layer in enumerate(loaded.model.spec.layers) if site in layer.sites]


Patch = tuple[str, int, int]  # site, layer, position
Values = dict[tuple[str, int], Tensor]  # by site and layer


def is_read(patch: Patch, tokens: int) -> bool:
    """Whether anything reads what stands there: the state after the last token is read by nobody."""
    site, _, position = patch
    return site != "ssm_state" or position < tokens - 1


def variant_of(patch: Patch, values: Values) -> Variant:
    site, layer, position = patch
    edit = Intervention(site, (layer,), Operation("replace", values=values), positions=(position,))
    return Variant(f"{site} at layer {layer}, position {position}", (edit,))


def sources(loaded: Loaded, source: Encoded, patches: list[Patch]) -> Iterator[Values]:
    """For each patch, the source's values by site and layer: of one whole pass, or of the states after a position."""
    record = Record(*{site for site, _, _ in patches} - {"ssm_state"}, keep=lambda x: x[0])
    forward(loaded.model, source.ids, tap=record)
    states: dict[int, Values] = {}
    for position in sorted({p for site, _, p in patches if site == "ssm_state"}):
        at_end = Record("ssm_state", keep=lambda x: x[0])
        forward(loaded.model, source.ids[:, : position + 1], tap=at_end)
        states[position] = at_end.seen
    for site, _, position in patches:
        yield states[position] if site == "ssm_state" else record.seen
