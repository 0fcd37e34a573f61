"""The attention sink, taken apart: is position 0 needed for its value, for the normalisation, or for its token?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Tap
from tokentrail.intervene.branching import AloneTap
from tokentrail.intervene.interventions import ON_KEYS, Intervention, Operation, Variant
from tokentrail.measure.answers import answer, kl
from tokentrail.measure.asked import asked
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.weights.load import Loaded


class Watch(Tap):
    """Notes every attention layer's mean weight on position 0 before another tap edits it."""

    costly = frozenset({"pattern"})

    def __init__(self, layers: tuple[int, ...], inner: Tap):
        self.layers, self.inner = layers, inner
        self.weight: dict[int, tuple[float, float]] = {}  # mean over queries, and of the last query alone

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        if site == "pattern" and layer in self.layers:  # (1, heads, queries, keys)
            self.weight[layer] = mean_on_first(tensor), tensor[0, :, -1, 0].mean().item()
        return self.inner(site, layer, tensor)


def mean_on_first(pattern: Tensor) -> float:
    """Mean weight on position 0 of a pattern (1, heads, queries, keys) but for the first query, which sees no other."""
    return pattern[0, :, 1:, 0].mean().item()


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `sink`; no rows for a model without attention layers, or for a prompt of one token."""
    layers = specs.layers_with(loaded.model.spec, "attention")
    encodable, refused = encoded(loaded, settings)
    prompts = [prompt for prompt in encodable if layers and prompt.ids.shape[1] > 1]
    replacement = None
    with asked(refused, intervention="replace_token"):
        replacement = loaded.tokenizer.word(settings["replacement"])[0]
    rows = [row for prompt in prompts for row in take_apart(loaded, prompt, layers, replacement)]
    return tables.frame("sink", rows, refused, model=settings["model"])


def take_apart(
    loaded: Loaded, prompt: Encoded, layers: tuple[int, ...], replacement: int | None
) -> Iterator[dict[str, Any]]:
    """Every intervention on one prompt; without a replacement, the token is left as it is."""
    runs: dict[str, tuple[Tensor, Tap]] = {"none": (prompt.ids, Tap())}
    for kind in ON_KEYS:
        edit = Intervention("pattern", layers, Operation(kind), positions=(0,))
        runs[kind] = (prompt.ids, AloneTap(Variant(kind, (edit,))))
    if replacement is not None:
        other = prompt.ids.clone()
        other[0, 0] = replacement
        runs["replace_token"] = (other, Tap())

    clean = None
    for intervention, (ids, tap) in runs.items():
        watch = Watch(layers, tap)
        said = answer(forward(loaded.model, ids, tap=watch, read=last(ids))[0, 0], prompt.target)
        clean = clean or said
        for layer, (weight, last_weight) in watch.weight.items():
            yield {
                "prompt": prompt.name,
                "intervention": intervention,
                "layer": layer,
                "weight_on_first": weight,
                "last_weight_on_first": last_weight,
                "kl": kl(clean.log_p, said.log_p),
                "target_probability": said.target_probability,
                "target_rank": said.target_rank,
                "top1_token": loaded.tokenizer.token(said.top1),
                "top1_probability": said.top1_probability,
            }
