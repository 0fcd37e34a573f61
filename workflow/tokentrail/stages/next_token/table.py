"""The table `next_token`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, flag, number, prob, text


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
