"""The frame: the only loop. Every model here is this function with other cells in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cache import Cache
from tokentrail.forward.cells.attention import AttentionWeights
from tokentrail.forward.cells.ffn import FfnWeights
from tokentrail.forward.cells.linear import BlockedLinear, Linear
from tokentrail.forward.cells.mamba2 import Mamba2Weights
from tokentrail.forward.cells.norm import NormWeights, norm
from tokentrail.forward.place import Place
from tokentrail.forward.registry import RUNS
from tokentrail.forward.taps import NO_TAP, Tap


class SubLayerWeights(NamedTuple):
    cell: AttentionWeights | Mamba2Weights | FfnWeights
    norm: NormWeights | None
    norm_after: NormWeights | None


@dataclass(frozen=True)
class Model:
    spec: specs.Spec
    tokens: Tensor | Callable  # (vocabulary, width), or a table cell: ids (rows, tokens) -> (rows, tokens, width)
    positions: Tensor | Callable | None  # (learned positions, width), or a table cell
    layers: tuple[dict[str, SubLayerWeights], ...]  # by name of the sub-layer
    final_norm: NormWeights
    head: Linear | BlockedLinear  # (vocabulary, width); the token table itself when tied


def forward(
    model: Model,
    ids: Tensor,
    cache: Cache | None = None,
    lengths: Tensor | None = None,
    tap: Tap = NO_TAP,
    read: Tensor | None = None,
) -> Tensor:
    """Logits for ids (rows, tokens): (rows, tokens, vocabulary), or (rows, n, vocabulary) at the n positions `read`.

    read (rows or 1, n) counts positions within this call; `last(ids, lengths)` reads the last real token of each
    row. With a cache the tokens continue those that it has read, and it is advanced; one call may bring any number
    of tokens. Rows shorter than the rest are padded on the right with any id, and lengths (rows) says how many
    tokens of each are real. Raises IndexError if a position table or the cache has no room for the tokens.
    """
    place = Place(ids, lengths, cache)
    check_room(model.spec, cache, place)
    x = through_layers(model, embed(model, ids, place, tap), place, cache, tap)
    if cache is not None:
        advance(cache, place)
    if read is not None:
        x = x.gather(1, read[..., None].expand(x.shape[0], -1, x.shape[2]))  # (rows, n, width)
    return unembed(model, x, tap)


def embed(model: Model, ids: Tensor, place: Place, tap: Tap = NO_TAP) -> Tensor:
    """ids (rows, tokens) -> the stream before the first layer (rows, tokens, width)."""
    x = tap("token_rows", -1, rows_of(model.tokens, ids) * model.spec.embedding_scale)
    if model.positions is not None:
        rows = rows_of(model.positions, place.positions.clamp(max=model.spec.learned_positions - 1))
        x = x + tap("position_rows", -1, rows)
    return tap("embed", -1, x)


def rows_of(table: Tensor | Callable, ids: Tensor) -> Tensor:
    """The table's rows at ids (rows, tokens): (rows, tokens, width)."""
    return F.embedding(ids, table) if isinstance(table, Tensor) else table(ids)


def through_layers(
    model: Model, x: Tensor, place: Place, cache: Cache | None = None, tap: Tap = NO_TAP, first: int = 0
) -> Tensor:
    """The stream (rows, tokens, width) entering layer `first` -> the stream leaving the last layer."""
    spec = model.spec
    for i in range(first, len(spec.layers)):
        layer, weights = spec.layers[i], model.layers[i]
        x = tap("resid_pre", i, x)
        for step, stream in zip(layer.steps, layer.streams, strict=True):
            read = x  # by every sub-layer of the step
            for sub in step:
                own = weights[sub.name]
                h = tap(f"{sub.name}_in", i, normed(read, own.norm, sub.norm))
                state = cache.states[i, sub.name] if cache is not None else None
                y, state = RUNS[type(sub.cell)].forward(h, own.cell, sub.cell, state, place, i, tap)
                if cache is not None:
                    cache.states[i, sub.name] = state
                y = tap(f"{sub.name}_out", i, normed(y, own.norm_after, sub.norm_after))
                x = torch.add(x, y, alpha=sub.scale)
            x = tap(stream, i, x)
    return x


def normed(x: Tensor, weights: NormWeights | None, spec: specs.Norm | None) -> Tensor:
    """x (rows, tokens, width) after a norm, or as it is where there is none."""
    return x if spec is None else norm(x, weights, spec)


def last(ids: Tensor, lengths: Tensor | None = None) -> Tensor:
    """The position of each row's last real token, to be `read`: (rows, 1)."""
    if lengths is None:
        lengths = torch.full((ids.shape[0],), ids.shape[1], device=ids.device)
    return lengths[:, None] - 1


def unembed(model: Model, x: Tensor, tap: Tap = NO_TAP) -> Tensor:
    """The last norm and the head: a stream (rows, tokens, width) -> logits (rows, tokens, vocabulary)."""
    layers = len(model.spec.layers)
    x = tap("final_norm", layers, norm(x, model.final_norm, model.spec.norm))
    return tap("logits", layers, model.head(x / model.spec.logit_divisor))


def check_room(spec: specs.Spec, cache: Cache | None, place: Place) -> None:
    if spec.learned_positions is not None and place.longest > spec.learned_positions:
        raise IndexError(f"{place.longest} tokens, but the position table has {spec.learned_positions} rows")
    if cache is not None and place.keys > cache.capacity:
        raise IndexError(f"{place.keys} tokens, but the cache has room for {cache.capacity}")


def advance(cache: Cache, place: Place) -> None:
    """Count this call's real tokens."""
    cache.lengths = cache.lengths + (place.tokens if place.lengths is None else place.lengths)
    if cache.past is not None and place.lengths is None:
        cache.past += place.tokens
    elif place.lengths is not None:
        first = int(cache.lengths[0])
        cache.past = first if bool((cache.lengths == first).all()) else None
