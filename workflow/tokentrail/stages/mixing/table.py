"""The table `mixing`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, text


class Mixing(Table):
    """Who takes how much from whom: attention weights, and Mamba2 unrolled to the same shape."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    head = count("head", "head")
    query_position = count("position that takes", "position")
    key_position = count("position that is taken from, at most query_position", "position")
    weight = number("weight; attention's rows sum to 1, Mamba2's do not and may be negative", "weight")
