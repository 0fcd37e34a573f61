"""The attention cell: multi-head or grouped-query, with or without rotation, per-head norms and a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.cells.norm import NormWeights, norm
from tokentrail.forward.cells.rope import rotate
from tokentrail.forward.kinds.attention import KeyValues
from tokentrail.forward.place import Place
from tokentrail.forward.taps import Tap


class AttentionWeights(NamedTuple):
    qkv: Linear  # ((heads + 2 * kv_heads) * head_dim, width): rows of q, then k, then v
    out: Linear  # (width, heads * head_dim)
    qk_norm: NormWeights | None  # (heads + kv_heads, 1, head_dim): q's weight for each of its heads, then k's


def assembled(
    spec: specs.Attention, tensor: Callable[[str], Tensor | None], linear: Callable[[str], Linear]
) -> AttentionWeights:
    """The weights, of the cell's tensors and matrices by name."""
    qk_norm = None
    if spec.qk_norm is not None:
        by_head = [(tensor("q_norm.weight"), spec.heads), (tensor("k_norm.weight"), spec.kv_heads)]
        qk_norm = NormWeights(torch.cat([weight.expand(heads, 1, -1) for weight, heads in by_head]), bias=None)
    return AttentionWeights(qkv=linear("qkv"), out=linear("out"), qk_norm=qk_norm)


def attention(
    x: Tensor,
    weights: AttentionWeights,
    spec: specs.Attention,
    state: KeyValues | None,
    place: Place,
    layer: int,
    tap: Tap,
) -> tuple[Tensor, KeyValues | None]:
    """x (rows, tokens, width) -> (rows, tokens, width), and the state with this call's keys and values in it."""
    rows, tokens, _ = x.shape
    heads = tap("qkv", layer, weights.qkv(x)).view(rows, tokens, -1, spec.head_dim).transpose(1, 2)
    qk, v = heads.split_with_sizes([spec.heads + spec.kv_heads, spec.kv_heads], dim=1)

    # Queries and keys are normalised and rotated as one tensor: a decode step is made of few and small operations.
    qk = tap("qk", layer, qk)
    if spec.qk_norm is not None:
        qk = norm(qk, weights.qk_norm, spec.qk_norm)
    if spec.rope is not None:
        cos, sin = place.rotation(spec.rope, spec.rotated, x.dtype)
        qk = rotate(qk, cos, sin)
    q, k = qk.split_with_sizes([spec.heads, spec.kv_heads], dim=1)  # each (rows, heads or kv_heads, tokens, head_dim)
    q, k, v = tap("q", layer, q), tap("k", layer, k), tap("v", layer, v)

    if state is not None:
        k, v = remember(state, k, v, place)  # (rows, kv_heads, keys, head_dim)
    if tap.costly:
        pattern = weights_of(tap("scores", layer, scores_of(q, k, spec)), spec, place)
        pattern = tap("pattern", layer, pattern)  # (rows, heads, tokens, keys)
        z = pattern @ each_query_head(v, spec)
    else:
        z = fused(q, k, v, spec, place)
    z = tap("z", layer, z)  # (rows, heads, tokens, head_dim)
    return weights.out(z.transpose(1, 2).reshape(rows, tokens, -1)), state


def remember(state: KeyValues, k: Tensor, v: Tensor, place: Place) -> tuple[Tensor, Tensor]:
    """Write k and v into the state at their positions; all keys and values up to here, as views."""
    if place.past is not None:
        state.keys.narrow(2, place.past, place.tokens).copy_(k)
        state.values.narrow(2, place.past, place.tokens).copy_(v)
    else:
        row = torch.arange(k.shape[0], device=k.device)[:, None]
        state.keys[row, :, place.positions] = k.transpose(1, 2)
        state.values[row, :, place.positions] = v.transpose(1, 2)
    return state.keys.narrow(2, 0, place.keys), state.values.narrow(2, 0, place.keys)


def fused(q: Tensor, k: Tensor, v: Tensor, spec: specs.Attention, place: Place) -> Tensor:
    """The weighted mix of values, without ever holding the weights. Vaswani et al. 2017, section 3.2."""
    all_seen = spec.window is None or place.keys <= spec.window
    causal = all_seen and place.past == 0 and place.tokens > 1
    alone = all_seen and place.past is not None and place.tokens == 1  # a single query may look at every key
    return F.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=None if causal or alone else place.visible(spec.window),
        is_causal=causal,
        scale=spec.scale,
        enable_gqa=spec.kv_heads != spec.heads,
    )


def scores_of(q: Tensor, k: Tensor, spec: specs.Attention) -> Tensor:
    """How well each query and key fit, of all pairs: (rows, heads, tokens, keys)."""
    return q @ each_query_head(k, spec).transpose(-1, -2) * spec.scale


def weights_of(scores: Tensor, spec: specs.Attention, place: Place) -> Tensor:
    """The attention weights themselves: (rows, heads, tokens, keys), each row sums to 1."""
    return scores.masked_fill(~place.visible(spec.window), float("-inf")).softmax(dim=-1)


def each_query_head(x: Tensor, spec: specs.Attention) -> Tensor:
    """(rows, kv_heads, keys, head_dim) -> (rows, heads, keys, head_dim): contiguous query heads share one."""
    return x if spec.kv_heads == spec.heads else x.repeat_interleave(spec.heads // spec.kv_heads, dim=1)
