"""One layer of each kind, step by step: every tensor that the model's own pass makes on the way, as a tap sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import SITES, Record
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded

EMBEDDING = {"token_rows": "token rows", "position_rows": "position rows"}


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `block`: the first layer with each kind of mixer."""
    prompts, refused = encoded(loaded, settings)
    rows = [
        {"prompt": prompt.name, "layer": layer, "mixer": mixer, "order": order} | step
        for prompt in prompts
        for mixer, layer, order, step in steps(loaded, prompt.ids)
    ]
    return tables.frame("block", rows, refused, model=settings["model"])


def steps(loaded: Loaded, ids: Tensor) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Mixer, layer, place and description of every step for ids (1, tokens), in the order in which they are made."""
    record = Record(*shown())
    forward(loaded.model, ids, tap=record, read=last(ids))
    for mixer, layer in first_of_each_kind(loaded.model.spec).items():
        words = loaded.model.spec.layers[layer].sites
        order = 0
        for (site, at), tensor in record.seen.items():
            step = words.get(site) if at == layer else EMBEDDING.get(site) if layer == 0 and at == -1 else None
            if step is not None:
                yield mixer, layer, order, {"step": step, "site": site} | described(site, tensor)
                order += 1


def shown() -> Iterator[str]:
    """The sites whose tensors have something to say at every token."""
    return (site for site, axes in SITES.items() if "tokens" in axes and site not in ("embed", "final_norm", "logits"))


def first_of_each_kind(spec: specs.Spec) -> dict[str, int]:
    """The first layer with each kind of mixer."""
    found: dict[str, int] = {}
    for index, layer in enumerate(spec.layers):
        found.setdefault(specs.kind_of(layer.mixer), index)
    return found


def described(site: str, tensor: Tensor) -> dict[str, Any]:
    """A step in numbers, of its values at the last position."""
    at_last = tensor.select(SITES[site].index("tokens"), -1).double().flatten()
    return {
        "shape": "x".join(map(str, tensor.shape)),
        "l2_norm": at_last.norm().item(),
        "rms": at_last.square().mean().sqrt().item(),
        "mean": at_last.mean().item(),
        "deviation": at_last.std(correction=0).item(),
    }
