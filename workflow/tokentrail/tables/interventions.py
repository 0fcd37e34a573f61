"""The tables of what is switched off, put in place or looked back at."""

from __future__ import annotations

from tokentrail.tables.columns import Table, count, flag, number, prob, text


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


class FillerSweep(Table):
    """The name further and further away: head, n fillers, tail."""

    filler = text("filler name")
    repeats = count("times that the filler stands between head and tail", "repeats")
    tokens = count("tokens of the whole input", "tokens", min=1)
    distance = count("tokens from the name's last piece to the last token", "tokens")
    variant = text("`as_trained`, or `attention_off` (every attention layer adds nothing)")
    target_probability = prob("probability of the target; empty unless status is ok", nullable=True)
    target_rank = count("rank of the target", "rank", nullable=True)
    top1_token = text("most likely token", nullable=True)
    top1_probability = prob("its probability", nullable=True)
    beyond_context = flag("longer than the context that the checkpoint states; measured all the same where it can be")
    status = text("`ok`, or `exceeds_positions` where the model has no such position", regex="^(ok|exceeds_positions)$")
    reason = text("why it was not run; empty if it was")

    @classmethod
    def asked(cls) -> list[str]:
        return ["filler", "repeats", "tokens", "variant"]


class LongRange(Table):
    """What reaches the last token from the name, however far: attention weight, and what Mamba2's decay leaves."""

    filler = text("filler name")
    repeats = count("times that the filler stands between head and tail", "repeats")
    tokens = count("tokens of the whole input", "tokens", min=1)
    distance = count("tokens from the name's last piece to the last token", "tokens")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    head = count("head", "head")
    attention_to_name = prob("weight of the last token on the name's pieces; empty for Mamba2", nullable=True)
    state_retention = prob(
        "share of what the name's last piece wrote into the state that the decay leaves; empty for attention",
        nullable=True,
    )


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


class Mixing(Table):
    """Who takes how much from whom: attention weights, and Mamba2 unrolled to the same shape."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    head = count("head", "head")
    query_position = count("position that takes", "position")
    key_position = count("position that is taken from, at most query_position", "position")
    weight = number("weight; attention's rows sum to 1, Mamba2's do not and may be negative", "weight")


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
