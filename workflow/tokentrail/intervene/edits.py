"""Applying one intervention to one row of a site's tensor, in place."""

from __future__ import annotations

import torch
from torch import Tensor

from tokentrail.intervene.interventions import Intervention

EVERYTHING = slice(None)


def apply(edit: Intervention, layer: int, row: Tensor) -> None:
    """Change `row`, a site's tensor without its first axis, where the intervention says."""
    heads = EVERYTHING if edit.heads is None else list(edit.heads)
    positions = EVERYTHING if edit.positions is None else list(edit.positions)
    if edit.site == "pattern":
        on_keys(edit, row[heads], lambda changed: row.__setitem__(heads, changed))
        return
    if edit.site == "z":  # (heads, tokens, head_dim) -> tokens first, as the others
        row = row.transpose(0, 1)
    rows = row[positions]  # a copy when positions are listed, so it is written back
    part = (EVERYTHING, heads) if edit.site in ("z", "ssm_y") else (EVERYTHING,)
    match edit.operation.kind:
        case "zero":
            rows[part] = 0
        case "scale":
            rows[part] = rows[part] * edit.operation.factor
        case _:
            values = edit.operation.values[edit.site, layer]
            if edit.site == "z":
                values = values.transpose(0, 1)
            rows[part] = values.expand_as(row)[positions][part]
    row[positions] = rows


def on_keys(edit: Intervention, weights: Tensor, write) -> None:
    """weights (heads, queries, keys), with `positions` the keys to act on.

    A query that may look at no other key is left as it is: without them it would have nothing to look at.
    """
    keys = EVERYTHING if edit.positions is None else list(edit.positions)
    changed = weights.clone()
    match edit.operation.kind:
        case "zero":
            changed[..., keys] = 0
        case "scale":
            changed[..., keys] = changed[..., keys] * edit.operation.factor
        case _:
            others = weights.clone()
            others[..., keys] = 0
            scaled = others / others.sum(dim=-1, keepdim=True).clamp(min=1e-30)
            match edit.operation.kind:
                case "mask":
                    changed = scaled
                case "drop_value":
                    changed = others
                case "renormalise":
                    changed = scaled + (weights - others)
            alone = ~other_keys(weights, keys)  # (queries)
            changed[:, alone] = weights[:, alone]
    write(changed)


def other_keys(weights: Tensor, keys: list[int]) -> Tensor:
    """Which queries may look at a key that is not among `keys`: (queries), for weights (heads, queries, keys)."""
    queries, count = weights.shape[-2:]
    visible = torch.ones(queries, count, dtype=torch.bool, device=weights.device).tril(count - queries)
    visible[:, keys] = False
    return visible.any(dim=-1)
