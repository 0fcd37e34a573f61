"""`timing`, its summary, `machine` and `cost`: under a clock that says what it is told."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from itertools import count

import polars as pl
import pytest
import torch
from column_checks import recomputes
from definitions import median, quantile
from tokentrail.measure import limits
from tokentrail.stages.cost import measure as cost
from tokentrail.stages.timing import machine, timing, timing_summary

CHOSEN = {
    "decode_contexts": [4, 62],
    "batches": [3],
    "batch_context": 5,
    "prefill_lengths": [6],
    "rounds": 3,
    "steps": 2,
    "peers": [],
    "threads": 1,
    "seed": 7,
    "memory_mb": 64,
}
LIMITS = {"matrix_peak": 32, "read_bandwidth": 1 << 12}  # rows of the matrix, bytes of the array


@pytest.fixture
def clock(monkeypatch):
    """Each call timed takes longer than the one before: 1, 2, 3 ... seconds."""
    ticks, taken = count(), []

    def read():
        if (tick := next(ticks)) % 2 == 0:
            taken.append(float(tick // 2 + 1))
            return 0.0
        return taken[-1]

    monkeypatch.setattr(limits.time, "perf_counter", read)
    monkeypatch.setattr(limits, "MATRIX", LIMITS["matrix_peak"])
    monkeypatch.setattr(limits, "ARRAY", LIMITS["read_bandwidth"])
    before = torch.get_num_threads()
    yield taken
    torch.set_num_threads(before)


@recomputes(
    "timing",
    *("implementation", "kind", "context", "batch", "block", "round", "place", "calls", "seconds", "operations"),
    *("parameter_bytes", "least_bytes", "threads", "status", "reason"),
    key=("kind", "context", "block", "round", "place"),
)
def test_timing(tiny, clock):
    frame = timing.measure(tiny.fresh(), tiny.settings(**CHOSEN))
    cases = {("decode", context, 1): 2 for context in CHOSEN["decode_contexts"]}
    cases |= {("batch", 5, 3): 2, ("prefill", 6, 1): 1, ("matrix_peak", 0, 0): 1, ("read_bandwidth", 0, 0): 1}
    rows = []
    turns = defaultdict(list)
    for row in frame.to_dicts():  # the order of a round is the seed's; each case has one place in it
        turns[row["block"], row["round"]].append((row["kind"], row["context"], row["batch"]))
    assert len(turns) == 6 and all(sorted(turn) == sorted(cases) for turn in turns.values())
    assert len({tuple(turn) for turn in turns.values()}) > 1
    taken = count(1)
    for block in (0, 1):
        for number in range(3):
            for place, case in enumerate(turns[block, number]):
                kind, context, batch = case
                rows.append(
                    {
                        "implementation": "machine" if kind in LIMITS else "tokentrail",
                        "kind": kind,
                        "context": context,
                        "batch": batch,
                        "block": block,
                        "round": number,
                        "place": place,
                        "calls": cases[case],
                        "seconds": float(next(taken)),
                        "threads": 1,
                        "status": "ok",
                        "reason": "",
                    }
                    | work(tiny, kind, context, batch)
                )
    assert len(clock) == len(rows)
    return frame, rows


def work(tiny, kind, context, batch):
    """Operations and bytes of one call, counted from the stored tensors and from config.json."""
    if kind == "matrix_peak":
        return {"operations": 2.0 * 32**3, "parameter_bytes": 0, "least_bytes": 0}
    if kind == "read_bandwidth":
        return {"operations": 0.0, "parameter_bytes": 0, "least_bytes": 1 << 12}
    new, past = (context, 0) if kind == "prefill" else (1, context)
    c, stored = tiny.config, tiny.weights()
    sizes = {name: tensor.numel() for name, tensor in stored.items()}
    looked_up = [n for n in sizes if any(part in n for part in ("wte", "wpe", "embed_tokens"))]
    matrices = sum(
        size for n, size in sizes.items() if stored[n].dim() == 2 and n not in looked_up and "lm_head" not in n
    )
    attention, mamba2 = tiny.kinds.count("attention"), tiny.kinds.count("mamba2")
    heads, kv_heads, size = 4, 4 if tiny.name == "gpt2" else 2, 16 if tiny.name == "qwen3" else 8
    inner = c.get("mamba_n_heads", 0) * c.get("mamba_d_head", 0)
    channels = inner + 2 * c.get("mamba_n_groups", 0) * c.get("mamba_d_state", 0)
    state = inner * c.get("mamba_d_state", 0)
    operations = 0
    for position in range(past, past + new):
        # A score and a share of the value for each key; a state is written and read, a product and a sum each.
        operations += 2 * matrices + 4 * attention * heads * size * (position + 1) + 4 * mamba2 * state
        operations += 2 * mamba2 * channels * c.get("mamba_d_conv", 0)
    operations += 2 * 338 * 32  # the head reads the last position alone
    kept = attention * past * 2 * kv_heads * size + mamba2 * (state + channels * (c.get("mamba_d_conv", 1) - 1))
    # GPT-2's head is the token table, so that is read whole; of its positions, a row for each token.
    unread = (64 - new) * 32 if tiny.name == "gpt2" else (338 - batch * new) * 32
    return {
        "operations": float(batch * operations),
        "parameter_bytes": 4 * sum(sizes.values()),
        "least_bytes": 4 * (sum(sizes.values()) - unread + batch * kept),
    }


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("gpt2", {"decode_contexts": [63], "batches": []}, "65 tokens, but the model has 64 positions"),
        ("qwen3", {"decode_contexts": [], "batches": [90000]}, "90000 rows of 7 tokens need .* memory_mb is 64"),
    ],
)
def test_a_case_that_is_skipped_says_why(tinies, clock, name, changes, reason):
    tiny = tinies(name)
    frame = timing.measure(tiny.fresh(), tiny.settings(**CHOSEN | changes))
    (row,) = frame.filter(status="skipped").to_dicts()
    assert pl.Series([row["reason"]]).str.contains(f"^{reason}$")[0] and row["seconds"] is None


MADE_UP = [  # implementation, kind, context, batch, calls, seconds of two blocks, operations, parameters, least bytes
    ("machine", "matrix_peak", 0, 0, 1, [[0.5, 0.25, 0.3], [0.5, 1.0, 0.4]], 100.0, 0, 0),
    ("machine", "read_bandwidth", 0, 0, 1, [[0.5, 1.0, 0.7], [0.1, 1.0, 0.2]], 0.0, 0, 50),
    ("tokentrail", "decode", 64, 1, 4, [[0.4, 0.9, 1.2], [0.88, 0.8, 0.92]], 40.0, 20, 30),
    ("tokentrail", "batch", 64, 8, 4, [[0.6, 0.5, 1.4], [0.7, 0.75, 0.72]], 320.0, 20, 44),
    ("tokentrail", "prefill", 10, 2, 1, [[2.0, 3.0, 2.5], [1.0, 1.5, 4.0]], 80.0, 20, 25),
    ("transformers eager", "decode", 64, 1, 4, [[0.8, 1.8, 2.2], [1.8, 1.6, 1.9]], 40.0, 20, 30),
    ("transformers sdpa", "decode", 999, 1, 4, [[None], []], 44.0, 20, 33),
]


def timed():
    rows = []
    for implementation, kind, context, batch, calls, seconds, operations, parameters, least in MADE_UP:
        for block, times in enumerate(seconds):
            for number, took in enumerate(times):
                rows.append(
                    {"model": "tiny", "implementation": implementation, "kind": kind, "context": context}
                    | {"batch": batch, "block": block, "round": number, "place": 0, "calls": calls, "seconds": took}
                    | {"operations": operations, "parameter_bytes": parameters, "least_bytes": least, "threads": 2}
                    | ({"status": "ok", "reason": ""} if took else {"status": "skipped", "reason": "too long"})
                )
    return pl.DataFrame(rows)


PEAK, BANDWIDTH = 100 / 0.25, 50 / 0.1  # of the best round


@recomputes(
    "timing_summary",
    *("implementation", "kind", "context", "batch", "rounds", "median_ms", "low_ms", "high_ms", "level"),
    *("p10_ms", "p90_ms", "min_ms", "max_ms", "repeat_median_ms"),
    *("drift", "tokens_per_second", "parameter_bytes_per_second", "least_bytes_per_second", "achieved_flops"),
    *("intensity", "matrix_peak", "read_bandwidth", "fraction_of_peak", "fraction_of_bandwidth", "threads"),
    *("status", "reason"),
    key=("implementation", "kind", "context", "batch"),
)
def test_timing_summary():
    rows = []
    for implementation, kind, context, batch, calls, seconds, operations, parameters, least in MADE_UP[2:]:
        same = {"implementation": implementation, "kind": kind, "context": context, "batch": batch, "threads": 2}
        same |= {"matrix_peak": PEAK, "read_bandwidth": BANDWIDTH, "intensity": operations / least}
        if seconds[0] == [None]:
            empty = ("median_ms", "low_ms", "high_ms", "level", "p10_ms", "p90_ms", "min_ms", "max_ms")
            empty += ("repeat_median_ms", "drift", "tokens_per_second")
            empty += ("parameter_bytes_per_second", "least_bytes_per_second", "achieved_flops", "fraction_of_peak")
            nothing = dict.fromkeys((*empty, "fraction_of_bandwidth"))
            rows.append(same | nothing | {"rounds": 0, "status": "skipped", "reason": "too long"})
            continue
        first, again = ([1000 * took / calls for took in block] for block in seconds)
        second = median(first) / 1000
        tokens = batch * (context if kind == "prefill" else 1)
        rows.append(
            same
            | {
                "rounds": 3,
                "median_ms": median(first),
                "low_ms": min(first),
                "high_ms": max(first),
                "level": 0.75,  # three rounds lie on one side of the median once in four times
                "min_ms": min(first),
                "max_ms": max(first),
                "p10_ms": quantile(first, 0.1),
                "p90_ms": quantile(first, 0.9),
                "repeat_median_ms": median(again),
                "drift": median(again) / median(first) - 1,
                "tokens_per_second": tokens / second,
                "parameter_bytes_per_second": parameters * tokens / second,
                "least_bytes_per_second": least / second,
                "achieved_flops": operations / second,
                "fraction_of_peak": operations / second / PEAK,
                "fraction_of_bandwidth": least / second / BANDWIDTH,
                "status": "ok",
                "reason": "",
            }
        )
    return timing_summary.measure(timed(), {"model": "tiny"}), rows


@recomputes(
    "cost",
    *("kind", "context", "batch", "price_per_hour", "occupancy", "tokens_per_second", "dollars_per_million_tokens"),
    "step_latency_ms",
    key=("kind", "context", "batch", "occupancy"),
)
def test_cost():
    summary = timing_summary.measure(timed(), {"model": "tiny"})
    rows = []
    for implementation, kind, context, batch, calls, seconds, *_ in MADE_UP:
        if implementation != "tokentrail":
            continue
        second = median(seconds[0]) / calls
        tokens = batch * (context if kind == "prefill" else 1) / second
        rows += [
            {
                "kind": kind,
                "context": context,
                "batch": batch,
                "price_per_hour": 3.0,
                "occupancy": occupancy,
                "tokens_per_second": tokens,
                "dollars_per_million_tokens": 3.0 / (3600 * occupancy * tokens) * 1e6,
                "step_latency_ms": 1000 * second,
            }
            for occupancy in (1.0, 0.25)
        ]
    return cost.measure(summary, {"model": "tiny", "price_per_hour": 3.0, "occupancy": [1.0, 0.25]}), rows


@recomputes("machine", "fact", "value", key=("fact",))
def test_machine():
    frame = machine.measure(timed(), {"model": "tiny", "device": "cpu"})
    found = dict(frame.select("fact", "value").iter_rows())
    facts = {
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "threads": "2",
        "device": "cpu",
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "float32 matrix peak": f"{PEAK / 1e9:.1f} GFLOP/s",
        "read bandwidth": f"{BANDWIDTH / 1e9:.1f} GB/s",
    }
    of_the_system = {"processor", "idle threads", "matrix library", "vector instructions"}
    assert found.keys() == facts.keys() | of_the_system and all(found[fact] for fact in of_the_system)
    return frame.filter(~pl.col("fact").is_in(of_the_system)), [{"fact": k, "value": v} for k, v in facts.items()]
