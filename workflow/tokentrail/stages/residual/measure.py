"""How long the stream's vectors are, and how long what each sub-layer adds is, at every position."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import Record
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded

SITES = (
    "embed",
    "resid_pre",
    "mixer_in",
    "mixer_out",
    "resid_mid",
    "ffn_in",
    "ffn_out",
    "resid_post",
    "final_norm",
)


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `residual`. Updates are shown as they are added, with the residual scale."""
    layers = loaded.model.spec.layers
    scale = {(f"{sub.name}_out", i): sub.scale for i, layer in enumerate(layers) for sub in layer.sublayers}
    frames = []
    prompts, refused = encoded(loaded, settings)
    for prompt in prompts:
        record = Record(*SITES, keep=lambda x: x[0].double())
        forward(loaded.model, prompt.ids, tap=record)
        for (site, layer), x in record.seen.items():
            frames.append(sizes(x * scale.get((site, layer), 1.0), prompt.name, max(layer, 0), site))
    return tables.frame("residual", frames, refused, model=settings["model"])


def sizes(x: Tensor, prompt: str, layer: int, site: str) -> pl.DataFrame:
    """x (tokens, width)."""
    return pl.DataFrame(
        {
            "position": range(x.shape[0]),
            "l2_norm": x.norm(dim=-1).tolist(),
            "rms": x.square().mean(dim=-1).sqrt().tolist(),
            "mean": x.mean(dim=-1).tolist(),
        }
    ).with_columns(prompt=pl.lit(prompt), layer=pl.lit(layer), site=pl.lit(site))
