"""The table `lens`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


class Lens(Table):
    """The logit lens: what the last position would answer if the model stopped at each site."""

    prompt = text("prompt name")
    variant = text("`as_trained`; `attention_off` beside it where Mamba2 layers are left to carry on alone")
    layer = count("layer; `embed` stands at layer 0 before any layer", "layer")
    site = text("`embed`, `resid_mid`, `resid_post`")
    target_probability = prob("probability of the target")
    target_rank = count("rank of the target", "rank")
    top1_token = text("most likely token")
    top1_probability = prob("its probability")
    entropy_bits = number("entropy", "bits", min=-1e-9)
    kl_to_final = number("KL(final output of the same variant || lens)", "nats", min=-1e-6)
