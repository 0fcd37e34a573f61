"""The table `cost`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, prob, text


class Cost(Table):
    """The price and the wait: what a million tokens cost at an assumed price of the machine."""

    kind = text("`decode`, `batch` or `prefill`, as timed", regex="^(decode|batch|prefill)$")
    context = count("tokens in the cache, or of the input", "tokens", min=1)
    batch = count("rows", "rows", min=1)
    price_per_hour = number("assumed price of the machine", "dollars/hour", min=0.0)
    occupancy = prob("assumed share of the paid time in which the machine works")
    tokens_per_second = number("tokens of all rows together while it works", "tokens/s", min=0.0)
    dollars_per_million_tokens = number(
        "price_per_hour 10^6 / (3600 occupancy tokens_per_second): machine time alone", "dollars", min=0.0
    )
    step_latency_ms = number("median time of one call, which every row waits for", "ms", min=0.0)
