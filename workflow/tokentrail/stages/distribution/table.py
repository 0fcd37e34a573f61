"""The table `distribution`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


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
