"""The tables of the answer and of the stream on its way to it."""

from __future__ import annotations

from tokentrail.tables.columns import Table, count, flag, number, prob, text


class NextToken(Table):
    """The first tokens of the last position's distribution; the target is always among the rows."""

    prompt = text("prompt name")
    rank = count("rank of the token, 0 is the most likely", "rank")
    token_id = count("token id", "id")
    token = text("the token's text")
    logit = number("logit", "logit")
    probability = prob("probability after the full softmax")
    nll = number("negative log probability", "nats", min=-1e-9)
    is_target = flag("the row is the prompt's target")


class Distribution(Table):
    """The whole distribution of a position in a few numbers: as computed, under decoding rules, and going on."""

    prompt = text("prompt name; for a combination of an experiment, the experiment's name and the levels")
    experiment = text("name of the factorial experiment; empty for a configured prompt")
    levels = text("`factor: level` of each factor, joined by commas; empty for a configured prompt")
    tokens = count("tokens of the input, with those that were appended", "tokens", min=1)
    step = count("tokens appended greedily before this position; 0 is the prompt's own last position", "tokens")
    decoding = text(
        "`none` (as computed), or what a decoder makes of the same logits without running the model again: "
        "`temperature t`, `top-k k`, `top-p p`"
    )
    top1_token = text("most likely token: what greedy decoding appends next")
    top1_probability = prob("its probability")
    target_probability = prob("probability of the prompt's target")
    target_rank = count("rank of the target in the logits; no decoding rule changes it", "rank")
    tokens_left = count("tokens that the decoding rule leaves a probability", "tokens", min=1)
    entropy_bits = number("entropy", "bits", min=-1e-9)
    effective_choices = number(
        "2 to the power of the entropy: equally likely tokens with the same entropy", "tokens", min=0.0
    )
    top5_mass = prob("probability of the five most likely tokens together")
    tokens_for_90_percent = count("fewest tokens that together hold 90% of the probability", "tokens", min=1)
    vocabulary = count("tokens in the vocabulary", "tokens", min=1)


class NameSwaps(Table):
    """One row for each template and name: is the name that was in the sentence the answer?"""

    set = text("name of the swap set in the configuration")
    template = text("template name")
    name = text("the name put in")
    target_token = text("first piece of the name, as the tokenizer cuts it in context")
    pieces = count("pieces that the tokenizer cuts the name into", "tokens", min=1)
    probability = prob("probability of the first piece at the last position")
    rank = count("rank of the first piece", "rank")
    top1_token = text("most likely token")
    top1_probability = prob("its probability")
    name_nll = number("negative log probability of the whole name, all pieces", "nats", min=-1e-9)


class NameSwapsSummary(Table):
    """The name swaps, averaged over names, with bootstrap percentile intervals over names."""

    set = text("name of the swap set")
    template = text("template name, or `all` for all templates of the set")
    rows = count("template and name pairs averaged", "rows", min=1)
    names = count("distinct names, the units that are resampled", "names", min=1)
    quantity = text("`probability`, `name_nll` or `top1_rate`")
    mean = number("mean over rows", "as the quantity")
    low = number("lower end of the interval", "as the quantity")
    high = number("upper end of the interval", "as the quantity")
    level = prob("level of the interval")


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


class Residual(Table):
    """Size of the stream and of what is added to it, at every position."""

    prompt = text("prompt name")
    position = count("position in the input", "position")
    layer = count("layer; the number of layers for `final_norm`", "layer")
    site = text("embed, resid_pre, mixer_in, mixer_out, resid_mid, ffn_in, ffn_out, resid_post or final_norm")
    l2_norm = number("Euclidean length", "activation", min=0.0)
    rms = number("root mean square over channels", "activation", min=0.0)
    mean = number("mean over channels", "activation")
