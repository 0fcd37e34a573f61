"""Direct logit attribution: the final logit, taken apart into what each head, FFN and the embedding added to it.

The last norm divides the whole stream by one number. Held at the value that it had, everything after it is linear,
and the contributions add up to the logit (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.cells.norm import NormWeights
from tokentrail.forward.frame import Model, SubLayerWeights, forward, last
from tokentrail.forward.taps import Record
from tokentrail.measure.answers import log_probabilities, ordered
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `attribution`; the rival is the most likely token that is not the target."""
    prompts, refused = encoded(loaded, settings)
    rows = [row for prompt in prompts for row in attribute(loaded, prompt)]
    return tables.frame("attribution", rows, refused, model=settings["model"])


def attribute(loaded: Loaded, prompt: Encoded) -> Iterator[dict[str, Any]]:
    model = loaded.model
    record = Record("embed", "z", "ffn_out", "resid_post", keep=at_last_token)
    logits = forward(model, prompt.ids, tap=record, read=last(prompt.ids))[0, 0]
    rival = next(t for t in ordered(log_probabilities(logits)).tolist() if t != prompt.target)
    same = {
        "prompt": prompt.name,
        "target_token": loaded.tokenizer.token(prompt.target),
        "rival_token": loaded.tokenizer.token(rival),
    }
    stream = record.seen["resid_post", len(model.spec.layers) - 1].double()
    directions = torch.stack([direction(model, stream, token) for token in (prompt.target, rival)])  # (2, width)
    for part, vector in parts(model, record.seen):
        target, other = (directions @ vector.double()).tolist()
        yield same | part | {"target_logit_contribution": target, "rival_logit_contribution": other}
    if model.final_norm.bias is not None:
        rows = model.head.weight[[prompt.target, rival]].double() / model.spec.logit_divisor
        target, other = (rows @ model.final_norm.bias.double()).tolist()
        part = {"layer": len(model.spec.layers), "site": "final_norm_bias", "head": None, "mixer": ""}
        yield same | part | {"target_logit_contribution": target, "rival_logit_contribution": other}


def at_last_token(x: Tensor) -> Tensor:
    """A stream (1, tokens, width) -> (width); z (1, heads, tokens, head_dim) -> (heads, head_dim)."""
    return x[0, ..., -1, :]


def direction(model: Model, stream: Tensor, token: int) -> Tensor:
    """What a vector in the stream must be multiplied by to give its share of the token's logit: (width), float64."""
    spec, weight = model.spec, model.head.weight[token].double() * model.final_norm.weight.double()
    weight = weight / spec.logit_divisor
    if spec.norm.kind == "layernorm":  # its mean is subtracted from every vector: the same as from the direction
        return (weight - weight.mean()) * torch.rsqrt(stream.var(correction=0) + spec.norm.eps)
    return weight * torch.rsqrt(stream.square().mean() + spec.norm.eps)


def parts(model: Model, seen: dict[tuple[str, int], Tensor]) -> Iterator[tuple[dict[str, Any], Tensor]]:
    """Every vector (width) that was added to the last token's stream, with the residual scale."""
    yield {"layer": 0, "site": "embed", "head": None, "mixer": ""}, seen["embed", -1]
    for i, layer in enumerate(model.spec.layers):
        for sub in layer.sublayers:
            if sub.cell.mixes:
                taken_apart = by_head(sub, model.layers[i][sub.name], seen["z", i])
                mixer = specs.kind_of(sub.cell)
            else:
                taken_apart, mixer = [("ffn_out", None, seen[f"{sub.name}_out", i])], ""
            for site, head, vector in taken_apart:
                yield {"layer": i, "site": site, "head": head, "mixer": mixer}, sub.scale * vector


def by_head(sub: specs.SubLayer, weights: SubLayerWeights, z: Tensor) -> Iterator[tuple[str, int | None, Tensor]]:
    """Site, head and vector (width) of what each head of a mixer adds, from z (heads, head_dim), and of its biases."""
    out = getattr(weights.cell, sub.cell.output)
    alone = torch.diag_embed(z.T).permute(1, 2, 0).flatten(1)  # (heads, heads * head_dim)
    bias = out(torch.zeros_like(alone[:1]))[0]  # (width)
    heads, constant = out(alone) - bias, None if out.bias is None else bias
    if sub.norm_after is not None:
        update = out(z.flatten()[None])[0]
        heads = held(heads, weights.norm_after, sub.norm_after, update)
        constant = None if constant is None else held(constant, weights.norm_after, sub.norm_after, update)
        if weights.norm_after.bias is not None:
            constant = weights.norm_after.bias if constant is None else constant + weights.norm_after.bias
    yield from (("z", head, vector) for head, vector in enumerate(heads))
    if constant is not None:
        yield "mixer_bias", None, constant


def held(vectors: Tensor, weights: NormWeights, norm: specs.Norm, at: Tensor) -> Tensor:
    """vectors (..., width) through a norm, but for its bias, held at the scale that it has for `at` (width)."""
    if norm.kind == "layernorm":
        vectors = (vectors - vectors.mean(dim=-1, keepdim=True)) * torch.rsqrt(at.var(correction=0) + norm.eps)
    else:
        vectors = vectors * torch.rsqrt(at.square().mean() + norm.eps)
    return vectors * weights.weight
