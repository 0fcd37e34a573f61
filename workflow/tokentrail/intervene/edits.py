"""Applying one intervention to one row of a site's tensor, in place."""

from __future__ import annotations

import torch
from torch import Tensor

from tokentrail.intervene.interventions import SITES, Intervention

EVERYTHING = slice(None)


def apply(edit: Intervention, layer: int, row: Tensor) -> None:
    """Change `row`, a site's tensor without its first axis, where the intervention says."""
    if edit.site == "pattern":
        new = on_keys(edit, row)
    elif edit.operation.kind == "zero":
        new = torch.zeros_like(row)
    elif edit.operation.kind == "scale":
        new = row * edit.operation.factor
    else:
        new = edit.operation.values[edit.site, layer].expand_as(row)
    row.copy_(torch.where(chosen(edit, row), new, row))


def chosen(edit: Intervention, row: Tensor) -> Tensor:
    """Which entries of a row are edited, as a mask that broadcasts to it.

    All queries and keys of the heads chosen, for attention weights: there the operation itself knows the keys.
    """
    mask = torch.ones([1] * row.dim(), dtype=torch.bool, device=row.device)
    for axis, name in enumerate(SITES[edit.site]):
        listed = edit.heads if name == "heads" else edit.positions if name == "positions" else None
        if listed is None or (edit.site == "pattern" and name == "positions"):
            continue
        along = torch.zeros(row.shape[axis], dtype=torch.bool, device=row.device)
        along[list(listed)] = True
        mask = mask & along.view([-1 if i == axis else 1 for i in range(row.dim())])
    return mask


def on_keys(edit: Intervention, weights: Tensor) -> Tensor:
    """weights (heads, queries, keys) with the operation done to the keys at `positions`, in all heads.

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
    return changed


def other_keys(weights: Tensor, keys: list[int]) -> Tensor:
    """Which queries may look at a key that is not among `keys`: (queries), for weights (heads, queries, keys)."""
    queries, count = weights.shape[-2:]
    visible = torch.ones(queries, count, dtype=torch.bool, device=weights.device).tril(count - queries)
    visible[:, keys] = False
    return visible.any(dim=-1)
