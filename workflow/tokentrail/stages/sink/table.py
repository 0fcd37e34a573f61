"""The table `sink`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


class Sink(Table):
    """Is position 0 needed for its value, for the normalisation, or for the token that stands there?"""

    prompt = text("prompt name")
    intervention = text(
        "`none`; `mask` (no query but the first sees position 0); `drop_value` (weights kept, its value zeroed); "
        "`renormalise` (value kept, the other weights scaled up as the mask would); `replace_token`"
    )
    layer = count("attention layer", "layer")
    weight_on_first = prob("weight on position 0 before any edit, mean over heads and over the queries after it")
    last_weight_on_first = prob("the same for the last query alone")
    kl = number(
        "KL(clean || changed) at the last position; the same for all layers of an intervention", "nats", min=-1e-6
    )
    target_probability = prob("probability of the target under the intervention")
    target_rank = count("rank of the target under the intervention", "rank")
    top1_token = text("most likely token under the intervention")
    top1_probability = prob("its probability")
