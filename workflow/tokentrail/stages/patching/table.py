"""The table `patching`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, text


class Patching(Table):
    """Interchange between two prompts that differ in one name: one site, layer and position at a time."""

    prompt = text("prompt that is run")
    source_prompt = text("prompt that the value put in place comes from")
    site = text("`resid_pre`, `mixer_out`, `ffn_out`, or `ssm_state` (the state after the position)")
    mixer = text("`attention` or `mamba2`: the layer's mixer")
    layer = count("layer", "layer")
    position = count("position in the input", "position")
    token = text("the prompt's token at the position")
    recovered = number(
        "(changed - prompt) / (source - prompt) of the logit difference: 0 changes nothing, 1 is the other prompt",
        "share",
    )
