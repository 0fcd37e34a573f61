"""The table `residual`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, text


class Residual(Table):
    """Size of the stream and of what is added to it, at every position."""

    prompt = text("prompt name")
    position = count("position in the input", "position")
    layer = count("layer; the number of layers for `final_norm`", "layer")
    site = text("embed, resid_pre, mixer_in, mixer_out, resid_mid, ffn_in, ffn_out, resid_post or final_norm")
    l2_norm = number("Euclidean length", "activation", min=0.0)
    rms = number("root mean square over channels", "activation", min=0.0)
    mean = number("mean over channels", "activation")
