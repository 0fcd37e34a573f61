"""The tables `timing`, `timing_summary` and `machine`."""

from __future__ import annotations

from tokentrail.declare.columns import MEDIAN_LEVEL, MEDIAN_LOW, STATUS, Table, count, number, prob, text

TIMED_KINDS = "^(decode|batch|prefill|matrix_peak|read_bandwidth)$"


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
