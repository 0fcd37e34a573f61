"""The table `mlp`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


class Mlp(Table):
    """What stands between the two matrices of each FFN: how much of it is close to nothing, and how far it reaches."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    position = count("position in the input", "position")
    width = count("channels", "channels", min=1)
    near_zero_fraction = prob("share of channels with |value| < 0.01")
    negative_fraction = prob("share of channels below 0")
    max = number("largest value", "activation")
    min = number("smallest value", "activation")
