"""The table `attribution`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, text


class Attribution(Table):
    """Direct logit attribution: what each part adds to the logits of the target and of a rival."""

    prompt = text("prompt name")
    layer = count("layer; 0 for `embed`, the number of layers for `final_norm_bias`", "layer")
    site = text("`embed`, `z` (one head, through the output projection), `mixer_bias`, `ffn_out`, `final_norm_bias`")
    head = count("head for `z`; empty otherwise", "head", nullable=True)
    mixer = text("`attention` or `mamba2` for `z` and `mixer_bias`; empty otherwise")
    target_token = text("the target")
    rival_token = text("the most likely other token")
    target_logit_contribution = number("added to the target's logit", "logit")
    rival_logit_contribution = number("added to the rival's logit", "logit")
