"""One layer of each kind, rebuilt from its cells step by step, and held against the frame's own pass.

The steps are written out here once more, without the loop and without fused kernels, so that every tensor on the way
has a name, a shape and a size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl
import torch
import torch.nn.functional as F
from torch import Tensor

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.cache import empty_mamba_state
from tokentrail.forward.cells.attention import AttentionWeights, each_query_head, weights_of
from tokentrail.forward.cells.ffn import FfnWeights
from tokentrail.forward.cells.mamba2 import Mamba2Weights, apply, convolve, unrolled
from tokentrail.forward.cells.norm import norm, unit_rms, wide
from tokentrail.forward.cells.rope import rotate
from tokentrail.forward.frame import Model, forward
from tokentrail.forward.place import Place
from tokentrail.forward.taps import Record
from tokentrail.measure.prompts import encoded
from tokentrail.weights.load import Loaded

SITES = ("resid_pre", "mixer_in", "q", "k", "v", "pattern", "conv_out", "dt", "ssm_y", "z", "mixer_out")
SITES += ("resid_mid", "ffn_in", "ffn_act", "ffn_out", "resid_post")


class Step(NamedTuple):
    """A tensor on the way, what it is, and the site of the frame that must hold the same; `` if there is none."""

    name: str
    site: str
    tensor: Tensor
    last: Tensor  # its values at the last position


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `block`: the first attention layer and the first Mamba2 layer, as far as the model has them."""
    rows = []
    prompts, refused = encoded(loaded, settings)
    for prompt in prompts:
        record = Record(*SITES)
        forward(loaded.model, prompt.ids, tap=record)
        for mixer, layer in first_of_each_kind(loaded.model.spec).items():
            steps = rebuild(loaded.model, prompt.ids, record.seen["resid_pre", layer], layer)
            for order, step in enumerate(steps):
                same = {"prompt": prompt.name, "layer": layer, "mixer": mixer, "order": order}
                rows.append(same | described(step, record.seen.get((step.site, layer))))
    return tables.frame("block", rows, refused, model=settings["model"])


def first_of_each_kind(spec: specs.Spec) -> dict[str, int]:
    """The first layer with each kind of mixer."""
    found: dict[str, int] = {}
    for index, layer in enumerate(spec.layers):
        found.setdefault(specs.kind_of(layer.mixer), index)
    return found


def described(step: Step, frames: Tensor | None) -> dict[str, Any]:
    """A step in numbers; `frames` is what the frame has at its site."""
    at_last = step.last.double().flatten()
    return {
        "step": step.name,
        "site": step.site,
        "shape": "x".join(map(str, step.tensor.shape)),
        "l2_norm": at_last.norm().item(),
        "rms": at_last.square().mean().sqrt().item(),
        "mean": at_last.mean().item(),
        "deviation": at_last.std(correction=0).item(),
        "max_abs_diff": None if frames is None else (step.tensor - frames).abs().max().item(),
    }


def rebuild(model: Model, ids: Tensor, entering: Tensor, layer: int) -> Iterator[Step]:
    """All steps of a layer for ids (1, tokens); `entering` (1, tokens, width) is the stream before it."""
    spec, weights, cell = model.spec, model.layers[layer], model.spec.layers[layer]
    place = Place(ids, None, None)
    if layer == 0:
        entering = yield from embedding(model, ids, place)
    yield by_token("stream entering", "resid_pre", entering)
    h = norm(entering, weights.mixer_norm, spec.norm)
    yield by_token("after the norm", "mixer_in", h)
    steps = attention_steps if isinstance(cell.mixer, specs.Attention) else mamba2_steps
    update = yield from steps(h, weights.mixer, cell.mixer, place)
    middle = entering + spec.residual_scale * update
    yield by_token("stream after the mixer", "resid_mid", middle)
    h = norm(middle, weights.ffn_norm, spec.norm)
    yield by_token("after the second norm", "ffn_in", h)
    update = yield from ffn_steps(h, weights.ffn, cell.ffn)
    yield by_token("stream leaving", "resid_post", middle + spec.residual_scale * update)


def by_token(name: str, site: str, tensor: Tensor) -> Step:
    """A step with the tokens as its second axis: (1, tokens, ...)."""
    return Step(name, site, tensor, tensor[:, -1])


def by_head(name: str, site: str, tensor: Tensor) -> Step:
    """A step with the tokens, or the queries, as its third axis: (1, heads, tokens, ...)."""
    return Step(name, site, tensor, tensor[:, :, -1])


def embedding(model: Model, ids: Tensor, place: Place):
    """Token rows, plus position rows where there are any: (1, tokens, width)."""
    x = F.embedding(ids, model.tokens) * model.spec.embedding_scale
    yield by_token("token rows", "", x)
    if model.positions is None:
        return x
    rows = F.embedding(place.positions, model.positions)
    yield by_token("position rows", "", rows)
    return x + rows


def attention_steps(x: Tensor, weights: AttentionWeights, spec: specs.Attention, place: Place):
    """x (1, tokens, width) -> the mixer's update (1, tokens, width)."""
    together = weights.qkv(x)  # (1, tokens, (heads + 2 kv_heads) head_dim)
    yield by_token("q, k and v together", "", together)
    by_heads = together.unflatten(-1, (-1, spec.head_dim)).transpose(1, 2)
    q, k, v = by_heads.split([spec.heads, spec.kv_heads, spec.kv_heads], dim=1)  # (1, heads, tokens, head_dim)
    changed = spec.qk_norm is not None or spec.rope is not None
    if changed:
        yield by_head("queries by head", "", q)
        yield by_head("keys by head", "", k)
    if spec.qk_norm is not None:
        together = norm(torch.cat([q, k], dim=1), weights.qk_norm, spec.qk_norm)
        q, k = together.split([spec.heads, spec.kv_heads], dim=1)
    if spec.rope is not None:
        turn = place.rotation(spec.rope, spec.head_dim, x.dtype)
        q, k = rotate(q, *turn), rotate(k, *turn)
    how = " and ".join(w for w, on in (("normalised", spec.qk_norm), ("rotated", spec.rope)) if on is not None)
    yield by_head(f"queries, {how}" if changed else "queries by head", "q", q)
    yield by_head(f"keys, {how}" if changed else "keys by head", "k", k)
    yield by_head("values by head", "v", v)
    scores = q @ each_query_head(k, spec).transpose(-1, -2) * spec.scale
    yield by_head("scores", "", scores)
    pattern = weights_of(q, k, spec, place)  # (1, heads, tokens, tokens)
    yield by_head("attention weights", "pattern", pattern)
    z = pattern @ each_query_head(v, spec)
    yield by_head("weighted values", "z", z)
    side_by_side = z.transpose(1, 2).flatten(2)
    yield by_token("heads side by side", "", side_by_side)
    update = weights.out(side_by_side)
    yield by_token("attention update", "mixer_out", update)
    return update


def mamba2_steps(x: Tensor, weights: Mamba2Weights, spec: specs.Mamba2, place: Place):
    """x (1, tokens, width) -> the mixer's update (1, tokens, width); the recurrence in its unrolled form."""
    together = weights.in_proj(x)
    yield by_token("gate, x, B, C, dt together", "", together)
    gate, xBC, dt = together.split([spec.inner, spec.conv_channels, spec.heads], dim=-1)
    yield by_token("gate", "", gate)
    yield by_token("x, B and C", "", xBC)
    empty = empty_mamba_state(spec, 1, x.dtype, x.device)
    xBC = F.silu(convolve(xBC, weights.conv, empty.window, place)[0])
    yield by_token("convolution and SiLU", "conv_out", xBC)
    per_group = spec.groups * spec.state_size
    u, B, C = wide(xBC).split([spec.inner, per_group, per_group], dim=-1)
    u = u.unflatten(-1, (spec.heads, spec.head_dim))
    B, C = (part.unflatten(-1, (spec.groups, spec.state_size)) for part in (B, C))
    yield by_token("x by head", "", u)
    yield by_token("B", "", B)
    yield by_token("C", "", C)
    dt = F.softplus(wide(dt) + wide(weights.dt_bias)).clamp(spec.dt_min, spec.dt_max)
    yield by_token("step sizes", "dt", dt)
    matrix = unrolled(dt, -torch.exp(wide(weights.A_log)), B, C) * dt.transpose(1, 2)[:, :, None]
    yield by_head("the recurrence unrolled", "pattern", matrix)
    y = apply(matrix, u) + wide(weights.D)[:, None] * u
    yield by_token("state read, plus the skip", "ssm_y", y)
    gated = y.flatten(2) * F.silu(wide(gate))
    yield by_token("gated", "", gated)
    normed = unit_rms(gated.unflatten(-1, (spec.groups, -1)), spec.eps).flatten(2)
    z = (weights.norm * normed.to(x.dtype)).unflatten(-1, (spec.heads, spec.head_dim)).transpose(1, 2)
    yield by_head("after the gated norm", "z", z)
    update = weights.out_proj(z.transpose(1, 2).flatten(2))
    yield by_token("Mamba2 update", "mixer_out", update)
    return update


def ffn_steps(x: Tensor, weights: FfnWeights, spec: specs.Ffn):
    """x (1, tokens, width) -> the FFN's update (1, tokens, width)."""
    h = weights.up(x)
    yield by_token("FFN gate and up together" if spec.kind == "swiglu" else "FFN widened", "", h)
    if spec.kind == "swiglu":
        gate, h = h.chunk(2, dim=-1)
        h = F.silu(gate) * h
    else:
        h = F.gelu(h, approximate="tanh")
    yield by_token("FFN activated", "ffn_act", h)
    update = weights.down(h)
    yield by_token("FFN update", "ffn_out", update)
    return update
