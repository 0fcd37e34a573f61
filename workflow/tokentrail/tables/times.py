"""The tables of caches, times and their price."""

from __future__ import annotations

from tokentrail.tables.columns import STATUS, Table, count, flag, number, prob, text


class Cache(Table):
    """Decode with a cache against full recomputation, ours and transformers', and the bytes that the cache holds."""

    prompt = text("prompt name")
    kind = text(
        "`decode` (the prompt, then one token a call), `chunked_prefill` (the prompt in pieces), `continuation` (the "
        "prompt, then several tokens in one call) or `batch` (prompts of unequal length as the rows of one batch, then "
        "one token a call)",
        regex="^(decode|chunked_prefill|continuation|batch)$",
    )
    piece = count("tokens that a call brings, but for the prompt itself and for a rest", "tokens", min=1)
    step = count("call, 0 is the first", "call")
    token = text("the last token that the call brings")
    tokens = count("tokens that the call brings to this row", "tokens", min=1)
    max_abs_logit_diff = number(
        "largest |cached - recomputed| of our pass, over the vocabulary and the call's tokens (for `batch`, the row's "
        "last); `decode` and `batch` recompute for every call, the others once",
        "logit",
        min=0.0,
    )
    mean_abs_logit_diff = number("mean |cached - recomputed| of our pass", "logit", min=0.0)
    top1_agrees = flag("cached and recomputed name the same first token, at every token compared")
    reference_max_abs_logit_diff = number(
        "largest |cached - recomputed| of transformers; its batch is padded on the left; this and its other cached "
        "figures are empty for a model without attention, of which it keeps no cache",
        "logit",
        min=0.0,
        nullable=True,
    )
    reference_mean_abs_logit_diff = number(
        "mean |cached - recomputed| of transformers", "logit", min=0.0, nullable=True
    )
    reference_top1_agrees = flag("the same of transformers' two first tokens", nullable=True)
    max_abs_error_ours = number("largest |ours cached - ours in float64, recomputed|", "logit", min=0.0)
    max_abs_error_ours_full = number("the same of ours recomputed in float32", "logit", min=0.0)
    max_abs_error_reference = number(
        "largest |transformers cached - ours in float64, recomputed|", "logit", min=0.0, nullable=True
    )
    max_abs_error_reference_full = number("the same of transformers recomputed", "logit", min=0.0)
    cache_tokens = count("tokens of this row that the cache has read after the call", "tokens", min=1)
    kv_bytes = count("bytes of this row's keys and values up to there", "bytes")
    conv_bytes = count("bytes of this row's convolution windows", "bytes")
    state_bytes = count("bytes of this row's SSM states", "bytes")
    formula_bytes = count("what the three must add up to, from the numbers of the spec alone", "bytes")
    reserved_bytes = count("what is set aside for this row from the start, room for more tokens included", "bytes")


TIMED_KINDS = "^(decode|batch|prefill|matrix_peak|read_bandwidth)$"
MEDIAN_LOW = (
    "lower end of the median's interval, from the k-th fastest round to the k-th slowest: the narrowest that holds the "
    "median with at least 95%, or the fastest and the slowest where six rounds were not taken"
)
MEDIAN_LEVEL = "probability with which the interval holds the median, whatever the distribution of the times"


class Timed(Table):
    """What was timed: the columns that `timing` and its summary share."""

    implementation = text(
        "`tokentrail`, `transformers eager`, `transformers sdpa`, or `machine` for what it can do at best"
    )
    kind = text(
        "`decode` (one row), `batch` (several rows), `prefill`; `matrix_peak` and `read_bandwidth` are the machine's "
        "limits, measured in the same rounds",
        regex=TIMED_KINDS,
    )
    context = count("tokens in the cache before the first step; for `prefill`, tokens of the input; 0 for limits")
    batch = count("rows; 0 for limits", "rows")


class Timing(Timed):
    """Wall-clock times, in shuffled order. This table and those made from it are the only ones that two runs may
    differ in."""

    block = count("0 for the first block of rounds, 1 for the repetition at the end", "block", max=1)
    round = count("round within the block", "round")
    place = count("place in the shuffled order of the round", "place")
    calls = count("decode steps, or passes, that `seconds` spans", "calls")
    seconds = number("wall time of the calls together; empty if skipped", "s", min=0.0, nullable=True)
    operations = number(
        "multiplications and additions in the matrix products and attention of one call: what the model needs, not "
        "what a profiler counted",
        "operations",
        min=0.0,
    )
    parameter_bytes = count("bytes of all parameters in the format that they are run in; 0 for limits", "bytes")
    least_bytes = count(
        "bytes that one call cannot do without reading once: every weight but the table rows that are not looked up, "
        "and the keys, values and states of the context; not measured traffic",
        "bytes",
    )
    threads = count("threads that torch used", "threads", min=1)
    status = text("`ok`, or `skipped`", regex=STATUS)
    reason = text("why it was skipped; empty if it was not")

    @classmethod
    def asked(cls) -> list[str]:
        return ["implementation", "kind", "context", "batch"]


class TimingSummary(Timed):
    """Median of the rounds with its interval, beside the limits that the same process measured."""

    rounds = count("rounds of the first block, which the median, its interval and the percentiles are over", "rounds")
    median_ms = number("median time of one call: a decode step, or a prefill", "ms", min=0.0, nullable=True)
    low_ms = number(MEDIAN_LOW, "ms", min=0.0, nullable=True)
    high_ms = number("upper end", "ms", min=0.0, nullable=True)
    level = prob(MEDIAN_LEVEL, nullable=True)
    p10_ms = number("10th percentile, interpolated; of few rounds nearly the fastest", "ms", min=0.0, nullable=True)
    p90_ms = number("90th percentile, interpolated; of few rounds nearly the slowest", "ms", min=0.0, nullable=True)
    min_ms = number("the fastest of the rounds", "ms", min=0.0, nullable=True)
    max_ms = number("the slowest of the rounds", "ms", min=0.0, nullable=True)
    repeat_median_ms = number("median of the block at the end", "ms", min=0.0, nullable=True)
    drift = number("repeat_median_ms / median_ms - 1", "share", nullable=True)
    tokens_per_second = number("tokens of all rows together, at the median", "tokens/s", min=0.0, nullable=True)
    parameter_bytes_per_second = number(
        "tokens_per_second times parameter_bytes: a normalisation, not traffic, as one read of a weight serves all "
        "rows and tokens of a call",
        "bytes/s",
        min=0.0,
        nullable=True,
    )
    least_bytes_per_second = number("least_bytes of the calls over their time", "bytes/s", min=0.0, nullable=True)
    achieved_flops = number("operations over the median time", "operations/s", min=0.0, nullable=True)
    intensity = number("operations / least_bytes", "operations/byte", min=0.0, nullable=True)
    matrix_peak = number("float32 matrix product, the best of the process", "operations/s", min=0.0)
    read_bandwidth = number("reading a large array, the best of the process", "bytes/s", min=0.0)
    fraction_of_peak = number("achieved_flops / matrix_peak", "share", min=0.0, nullable=True)
    fraction_of_bandwidth = number(
        "least_bytes_per_second / read_bandwidth; above 1 for a model that fits a cache of the processor",
        "share",
        min=0.0,
        nullable=True,
    )
    threads = count("threads that torch used", "threads", min=1)
    status = text("`ok`, or `skipped`", regex=STATUS)
    reason = text("why it was skipped; empty if it was not")

    @classmethod
    def asked(cls) -> list[str]:
        return []  # `timing` says it


class Machine(Table):
    """The machine that the times are of."""

    fact = text("name of the fact")
    value = text("its value, with its unit")


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
