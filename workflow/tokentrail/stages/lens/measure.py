"""The logit lens (nostalgebraist 2020): what the last position would answer if the model stopped early."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch

from tokentrail import tables
from tokentrail.forward.frame import forward, last, unembed
from tokentrail.forward.taps import NO_TAP, Chain, Record, Tap
from tokentrail.measure.answers import answer, kl
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.measure.variants import is_hybrid, taps
from tokentrail.weights.load import Loaded

SITES = ("embed", "resid_mid", "resid_post")


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `lens`: the final norm is taken anew at every site, and the last row is the pass's own output."""
    spec = loaded.model.spec
    variants = taps(spec) if is_hybrid(spec) else {"as_trained": NO_TAP}
    prompts, refused = encoded(loaded, settings)
    rows = [
        {"variant": variant} | row
        for prompt in prompts
        for variant, tap in variants.items()
        for row in trace(loaded, prompt, tap)
    ]
    return tables.frame("lens", rows, refused, model=settings["model"])


def trace(loaded: Loaded, prompt: Encoded, change: Tap) -> list[dict[str, Any]]:
    record = Record(*SITES, keep=lambda stream: stream[:, -1:])
    logits = forward(loaded.model, prompt.ids, tap=Chain(change, record), read=last(prompt.ids))
    final = answer(logits[0, 0], prompt.target)
    rows = []
    for (site, layer), stream in record.seen.items():  # in the order of the pass
        # One row at a time: the same product as the model's own last step, so that the last row equals its output.
        said = answer(unembed(loaded.model, stream)[0, 0], prompt.target)
        rows.append(
            {
                "prompt": prompt.name,
                "layer": max(layer, 0),
                "site": site,
                "target_probability": said.target_probability,
                "target_rank": said.target_rank,
                "top1_token": loaded.tokenizer.token(said.top1),
                "top1_probability": said.top1_probability,
                "entropy_bits": said.entropy_bits,
                "kl_to_final": kl(final.log_p, said.log_p),
            }
        )
    return rows
