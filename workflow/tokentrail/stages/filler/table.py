"""The tables `filler_sweep` and `long_range`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, flag, prob, text


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
