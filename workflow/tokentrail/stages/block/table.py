"""The table `block`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, text


class Block(Table):
    """One layer of each kind, step by step: every tensor that the model's own pass makes on the way."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    order = count("place of the step", "step")
    step = text("what the step makes")
    site = text("site of the pass at which it was recorded")
    shape = text("shape, for example `1x18x576`")
    l2_norm = number("Euclidean length at the last position", "activation", min=0.0)
    rms = number("root mean square at the last position", "activation", min=0.0)
    mean = number("mean at the last position", "activation")
    deviation = number("population standard deviation at the last position", "activation", min=0.0)
