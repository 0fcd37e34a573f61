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
from tokentrail.forward.cache import Cache, new_cache
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Record
from tokentrail.intervene.branching import run
from tokentrail.intervene.interventions import Intervention, Operation, Variant
from tokentrail.measure.ablations import check_equal_length
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.weights.load import Loaded

TOLD_APART = 1e-3  # logits: below this the two prompts give the same answer and nothing can be restored


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `patching`: positions from the first that differs on; before it both runs are the same.

    Raises PromptError for prompts of unequal length, equal prompts, or prompts that the model does not tell apart.
    """
    by_name = {prompt.name: prompt for prompt in encoded(loaded, settings)}
    pairs = [(by_name[pair["prompt"]], by_name[pair["source"]]) for pair in settings["pairs"]]
    for prompt, source in pairs:
        check_equal_length(loaded, prompt.name, prompt.ids, source.name, source.ids)
    rows = [row for prompt, source in pairs for row in interchange(loaded, prompt, source, settings)]
    return tables.frame("patching", rows, model=settings["model"])


def interchange(loaded: Loaded, prompt: Encoded, source: Encoded, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
    places = [
        (site, layer, p) for site, layers in edited(settings, loaded) for layer in layers for p in range(first, tokens)
    ]

    by_site = [place for place in places if place[0] != "ssm_state"]
    changed = {**by_value(loaded, prompt, source, by_site, settings["memory_mb"] << 20)} if by_site else {}
    if any(site == "ssm_state" for site, _, _ in places):
        changed |= by_state(loaded, prompt, source, first)
    for place in places:
        if place not in changed:  # the state after the last token is read by nobody
            continue
        site, layer, position = place
        yield {
            "prompt": prompt.name,
            "source_prompt": source.name,
            "site": site,
            "mixer": specs.kind_of(loaded.model.spec.layers[layer].mixer),
            "layer": layer,
            "position": position,
            "token": text[position],
            "recovered": ((difference(changed[place]) - own) / (other - own)).item(),
        }


def edited(settings: dict[str, Any], loaded: Loaded) -> Iterator[tuple[str, list[int]]]:
    """Each site with the layers that have it."""
    layers = loaded.model.spec.layers
    for site in settings["sites"]:
        wanted = range(len(layers))
        yield site, [i for i in wanted if site != "ssm_state" or isinstance(layers[i].mixer, specs.Mamba2)]


Place = tuple[str, int, int]  # site, layer, position


def by_value(loaded: Loaded, prompt: Encoded, source: Encoded, places: list[Place], memory: int) -> dict[Place, Tensor]:
    """Logits (vocabulary) for each place, with the source's value of a site there."""
    record = Record(*{site for site, _, _ in places}, keep=lambda x: x[0])
    forward(loaded.model, source.ids, tap=record)
    replace = Operation("replace", values=record.seen)
    variants = [
        Variant(f"{site} at layer {layer}, position {p}", (Intervention(site, (layer,), replace, positions=(p,)),))
        for site, layer, p in places
    ]
    return dict(zip(places, run(loaded.model, prompt.ids, variants, memory).logits, strict=True))


def by_state(loaded: Loaded, prompt: Encoded, source: Encoded, first: int) -> dict[Place, Tensor]:
    """Logits for each Mamba2 layer and position, with the source's SSM state after that position.

    Both prompts are read token by token; after each, one row for each layer goes on from the prompt's own caches
    with one state exchanged.
    """
    spec, tokens = loaded.model.spec, prompt.ids.shape[1]
    layers = [i for i, layer in enumerate(spec.layers) if isinstance(layer.mixer, specs.Mamba2)]
    caches = {p.name: new_cache(spec, 1, tokens, loaded.model.tokens.dtype, loaded.device) for p in (prompt, source)}
    out: dict[Place, Tensor] = {}
    read = 0
    for position in range(first, tokens - 1):
        for p in (prompt, source):
            forward(
                loaded.model, p.ids[:, read : position + 1], caches[p.name], read=last(p.ids[:, read : position + 1])
            )
        read = position + 1
        cache = exchanged(caches[prompt.name], caches[source.name], layers)
        rest = prompt.ids[:, read:].expand(len(layers), -1)
        logits = forward(loaded.model, rest, cache, read=last(rest))[:, 0]
        out |= {("ssm_state", layer, position): logits[row] for row, layer in enumerate(layers)}
    return out


def exchanged(own: Cache, other: Cache, layers: list[int]) -> Cache:
    """The prompt's cache, one row for each of `layers`, each row with the other's SSM state at its layer."""
    cache = own.repeat(len(layers))
    for row, layer in enumerate(layers):
        cache.states[layer].ssm[row] = other.states[layer].ssm[0]
    return cache
