"""What the model says next: the first tokens of the last position's distribution, and the target."""

from __future__ import annotations

from typing import Any

import polars as pl
import torch

from tokentrail import tables
from tokentrail.forward.frame import forward, last
from tokentrail.measure.answers import log_probabilities, ordered, rank
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `next_token`."""
    rows = []
    prompts, refused = encoded(loaded, settings)
    for prompt in prompts:
        logits = forward(loaded.model, prompt.ids, read=last(prompt.ids))[0, 0]  # (vocabulary)
        log_p = log_probabilities(logits)
        shown = ordered(log_p)[: settings["top_k"]].tolist()
        shown += [] if prompt.target in shown else [prompt.target]
        rows += [
            {
                "prompt": prompt.name,
                "rank": rank(log_p, token),
                "token_id": token,
                "token": loaded.tokenizer.token(token),
                "logit": logits[token].item(),
                "probability": log_p[token].exp().item(),
                "nll": -log_p[token].item(),
                "is_target": token == prompt.target,
            }
            for token in shown
        ]
    return tables.frame("next_token", rows, refused, model=settings["model"])
