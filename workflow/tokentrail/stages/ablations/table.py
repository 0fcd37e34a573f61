"""The table `ablations`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


class Ablations(Table):
    """What the last position answers when a part is switched off or swapped."""

    prompt = text("prompt name")
    component = text(
        "`clean` (nothing changed), `mixer`, `ffn`, `head`, `all attention`, `all mamba2`, or `mamba2 from layer k`"
    )
    mixer = text("`attention` or `mamba2` for a mixer or a head; empty otherwise")
    layers = text("layers changed, as ranges; empty for `clean`")
    heads = text("head changed; empty for all of the layer")
    operation = text(
        "`zero`, `mean` (over the reference prompts) or `resample` (from another prompt); `none` for `clean`"
    )
    target_probability = prob("probability of the target")
    target_rank = count("rank of the target", "rank")
    top1_token = text("most likely token")
    top1_probability = prob("its probability")
    kl = number("KL(clean || changed)", "nats", min=-1e-6)
    planned_edits = count("edits that the variant plans, one for each layer", "edits")
    applied_edits = count("edits that the pass applied", "edits")
