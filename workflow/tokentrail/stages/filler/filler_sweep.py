"""Does the answer survive distance? As trained, and with every attention layer off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Tap
from tokentrail.measure.answers import answer
from tokentrail.measure.variants import taps
from tokentrail.stages.filler.distance import Stretched, inputs
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `filler_sweep`. An input that is too long for the model has a row that says so."""
    rows, context = [], loaded.model.spec.trained_positions
    stretched, refused = inputs(loaded, settings)
    for series in stretched:
        fitting = [one for one in series if one.fits]
        for variant, tap in taps(loaded.model.spec).items():
            for one, logits in zip(fitting, shared_prefixes(loaded, fitting, tap), strict=True):
                said = answer(logits, one.target)
                rows.append(
                    one.about
                    | {
                        "variant": variant,
                        "target_probability": said.target_probability,
                        "target_rank": said.target_rank,
                        "top1_token": loaded.tokenizer.token(said.top1),
                        "top1_probability": said.top1_probability,
                        "status": "ok",
                        "reason": "",
                    }
                )
            rows += [beyond(loaded, one) | {"variant": variant} for one in series if not one.fits]
    nothing = {"target_probability": None, "target_rank": None, "top1_token": None, "top1_probability": None}
    rows = [nothing | row | {"beyond_context": row["tokens"] > context} for row in rows]
    return tables.frame("filler_sweep", rows, refused, model=settings["model"])


def beyond(loaded: Loaded, one: Stretched) -> dict[str, Any]:
    """What is said of an input that the model has no positions for."""
    why = f"{one.ids.shape[1]} tokens, but the model has {loaded.model.spec.learned_positions} positions"
    return one.about | {"status": "exceeds_positions", "reason": why}


def shared_prefixes(loaded: Loaded, series: list[Stretched], tap: Tap) -> Iterator[Tensor]:
    """Logits (vocabulary) at the end of each input, from the shortest to the longest.

    What an input has in common with the longest is read once: each goes on from a fork of the one growing cache.
    """
    if not series:
        return
    longest = series[-1].ids
    cache = new_cache(loaded.model.spec, 1, longest.shape[1], loaded.model.tokens.dtype, loaded.device)
    for one in series:
        shared = min(common_prefix(one.ids, longest), one.ids.shape[1] - 1)
        if shared > cache.past:
            new = longest[:, cache.past : shared]
            forward(loaded.model, new, cache, tap=tap, read=last(new))
        rest = one.ids[:, cache.past :]
        yield forward(loaded.model, rest, cache.fork(), tap=tap, read=last(rest))[0, 0]


def common_prefix(a: Tensor, b: Tensor) -> int:
    """Tokens that a (1, n) and b (1, m) begin with alike."""
    n = min(a.shape[1], b.shape[1])
    return int((a[0, :n] == b[0, :n]).int().cumprod(0).sum())
