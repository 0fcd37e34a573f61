"""The table `attention`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


class Attention(Table):
    """Every attention head's last row in a few numbers."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    head = count("head", "head")
    argmax_position = count("position with the largest weight", "position")
    argmax_token = text("its token")
    argmax_weight = prob("its weight")
    entropy_bits = number("entropy of the row", "bits", min=-1e-6)
    weight_on_first = prob("weight on the first token")
