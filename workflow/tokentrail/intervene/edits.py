"""Applying one intervention to one row of a site's tensor, in place."""

from __future__ import annotations

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
    """weights (heads, queries, keys), with `positions` the keys to act on."""
    keys = EVERYTHING if edit.positions is None else list(edit.positions)
    changed = weights.clone()
    taken = changed[..., keys].sum(dim=-1, keepdim=True)  # (heads, queries, 1)
    match edit.operation.kind:
        case "zero" | "drop_value":
            changed[..., keys] = 0
        case "scale":
            changed[..., keys] = changed[..., keys] * edit.operation.factor
        case "mask":
            changed[..., keys] = 0
            changed = changed * others_scale(taken)
        case "renormalise":
            kept = changed[..., keys]
            changed = changed * others_scale(taken)
            changed[..., keys] = kept
    write(changed)


def others_scale(taken: Tensor) -> Tensor:
    """What the other weights are multiplied by when the keys that hold `taken` of them leave.

    A query that sees no other key keeps nothing: its row stays zero rather than becoming NaN.
    """
    left = 1 - taken
    return (left > 1e-6) / left.clamp(min=1e-6)
