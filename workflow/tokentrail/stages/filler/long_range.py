"""What reaches the last token from the name: attention's weight on it, and what Mamba2's decay leaves of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.errors import UnsupportedError
from tokentrail.forward import spec as specs
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Record
from tokentrail.stages.filler.distance import Stretched, inputs
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `long_range`, on the inputs of `filler_sweep` that fit the model."""
    stretched, refused = inputs(loaded, settings)
    fitting = [one for series in stretched for one in series if one.fits]
    rows = [one.about | row for one in fitting for row in reach(loaded, one)]
    return tables.frame("long_range", rows, refused, model=settings["model"])


def reach(loaded: Loaded, one: Stretched) -> Iterator[dict[str, Any]]:
    spec, ids = loaded.model.spec, one.ids
    cache = new_cache(spec, 1, ids.shape[1], loaded.model.tokens.dtype, loaded.device)
    before, at_end = Record("dt"), Record("dt", "pattern")
    forward(loaded.model, ids[:, :-1], cache, tap=before, read=last(ids[:, :-1]))
    forward(loaded.model, ids[:, -1:], cache, tap=at_end)  # only the last token's weights are ever made explicit

    for i, layer in enumerate(spec.layers):
        same = {"layer": i, "mixer": specs.kind_of(layer.mixer)}
        match same["mixer"]:
            case "attention":
                weights = at_end.seen["pattern", i][0, :, 0, list(one.name)].sum(dim=-1)  # (heads)
                values = [{"attention_to_name": w, "state_retention": None} for w in weights.tolist()]
            case "mamba2":
                dt = torch.cat([before.seen["dt", i], at_end.seen["dt", i]], dim=1)[0]  # (tokens, heads)
                left = retention(dt, loaded.model.layers[i]["mixer"].cell.A_log, one.name[-1])
                values = [{"attention_to_name": None, "state_retention": r} for r in left.tolist()]
            case other:
                raise UnsupportedError(f"layer {i} is a {other}, and how far it reaches back is not known here")
        yield from (same | {"head": head} | value for head, value in enumerate(values))


def retention(dt: Tensor, A_log: Tensor, position: int) -> Tensor:
    """Share of a write at `position` that is left after the last token: (heads), for dt (tokens, heads).

    Every later token multiplies the state by exp(dt A), A = -exp(A_log).
    """
    return torch.exp(-torch.exp(A_log.double()) * dt[position + 1 :].double().sum(dim=0))
