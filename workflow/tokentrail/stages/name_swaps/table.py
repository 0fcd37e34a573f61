"""The tables `name_swaps` and `name_swaps_summary`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


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
