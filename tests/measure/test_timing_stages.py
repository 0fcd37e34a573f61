"""Timing: what is timed, in which order, what is skipped, and what the summary makes of it. No time is judged."""

from __future__ import annotations

import polars as pl
import pytest
import torch
from random_models import FULL_SHAPES, VARIANTS, build
from tokentrail import tables
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import forward
from tokentrail.measure import limits
from tokentrail.measure.work import work
from tokentrail.stages.cost import measure as cost
from tokentrail.stages.timing import machine, timing, timing_summary
from tokentrail.weights.load import Loaded

CHOSEN = {
    "decode_contexts": [4, 9],
    "batches": [1, 3],
    "batch_context": 5,
    "prefill_lengths": [6],
    "rounds": 3,
    "steps": 2,
    "peers": ["eager", "sdpa"],
    "threads": None,
    "seed": 7,
    "memory_mb": 64,
}


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(limits, "MATRIX", 32)
    monkeypatch.setattr(limits, "ARRAY", 1 << 12)


def timed(loaded, settings, **changes) -> pl.DataFrame:
    return timing.measure(loaded, settings | CHOSEN | changes)


def test_every_case_is_timed_in_every_round_of_both_blocks(loaded, settings, tmp_path):
    frame = timed(loaded, settings)
    tables.write("timing", frame, tmp_path / "t")
    cases = frame.group_by("implementation", "kind", "context", "batch").agg(pl.len(), pl.col("seconds").min())
    assert cases.filter(pl.col("implementation") != "machine").height == 3 * (2 + 2 + 1)
    assert set(cases["len"]) == {2 * 3} and cases["seconds"].min() > 0
    assert {"matrix_peak", "read_bandwidth"} <= set(frame["kind"])
    assert set(frame.filter(kind="decode")["calls"]) == {2} and set(frame.filter(kind="prefill")["calls"]) == {1}


def test_the_order_is_shuffled_anew_in_every_round_and_is_the_seeds(loaded, settings):
    def orders(seed):
        frame = timed(loaded, settings, peers=[], seed=seed).with_row_index()
        rounds = frame.group_by("block", "round", maintain_order=True).agg(
            pl.concat_str("kind", "context", "batch", separator=" ")
        )
        return rounds["kind"].to_list()

    one = orders(7)
    assert len({tuple(order) for order in one}) > 1
    assert one == orders(7) != orders(8)


def test_threads_are_set_and_recorded(loaded, settings):
    before = torch.get_num_threads()
    try:
        frame = timed(loaded, settings, peers=[], threads=1)
        assert torch.get_num_threads() == 1 and set(frame["threads"]) == {1}
    finally:
        torch.set_num_threads(before)


def test_what_cannot_be_timed_is_skipped_with_the_reason(loaded, settings):
    frame = timed(loaded, settings, peers=[], decode_contexts=[4, 255], batches=[1, 4000])
    skipped = frame.filter(status="skipped")
    assert skipped["seconds"].is_null().all() and (skipped["calls"] > 0).all()
    (reason,) = skipped.filter(kind="batch")["reason"]
    assert "4000 rows of 7 tokens need" in reason and "memory_mb is 64" in reason
    room = loaded.model.spec.learned_positions
    beyond = skipped.filter(kind="decode")["reason"].to_list()
    assert beyond == ([] if room is None else ["257 tokens, but the model has 256 positions"])
    summary = timing_summary.measure(frame, settings)
    assert summary.filter(status="skipped")["median_ms"].is_null().all()
    assert cost.measure(summary, settings | {"price_per_hour": 1.0, "occupancy": [1.0]})["batch"].max() == 1


def test_a_peer_that_cannot_decode_the_model_is_skipped(settings, tmp_path):
    pair = build(VARIANTS["granite-mamba-only"], tmp_path)
    loaded = Loaded(pair.ours(), None, pair.checkpoint, torch.device("cpu"))
    frame = timed(loaded, settings, rounds=1)
    assert set(frame.filter(status="skipped")["implementation"]) == {"transformers eager", "transformers sdpa"}
    assert set(frame.filter(status="skipped")["reason"]) == {"transformers keeps no cache of a model without attention"}


def test_every_measurement_starts_at_the_same_length(loaded):
    ids = timing.random_ids(loaded.model.spec.vocabulary, 2, 6)
    with torch.inference_mode():
        prepare = timing.Ours(loaded.model).decode(ids, steps=2)
        first, again = prepare()(), prepare()()
        token = ids[:, -1:]
        whole = forward(loaded.model, torch.cat([ids, token, token], dim=1))[:, -2:]
    assert torch.equal(torch.cat(first, dim=1), torch.cat(again, dim=1))
    assert (torch.cat(first, dim=1) - whole).abs().max() < 1e-5


def test_the_peers_decode_the_same(loaded):
    from tokentrail.measure.reference import Transformers, open_reference

    ids = timing.random_ids(loaded.model.spec.vocabulary, 2, 6)
    with torch.inference_mode():
        ours = timing.Ours(loaded.model).decode(ids, steps=2)()()
        for attention in ("eager", "sdpa"):
            peer = Transformers(open_reference(loaded.checkpoint), attention).decode(ids, steps=2)
            for theirs in (peer()(), peer()()):
                assert (theirs[1].logits - ours[1]).abs().max() < 1e-5


def rows(implementation, kind, context, batch, calls, seconds, operations=0, least=0, parameters=0):
    return [
        {"model": "m", "implementation": implementation, "kind": kind, "context": context, "batch": batch}
        | {"block": block, "round": number, "place": 0, "calls": calls, "seconds": took}
        | {"operations": operations, "parameter_bytes": parameters, "least_bytes": least}
        | {"threads": 2, "status": "ok", "reason": ""}
        for block, times in enumerate(seconds)
        for number, took in enumerate(times)
    ]


SYNTHETIC = pl.DataFrame(
    [
        *rows("machine", "matrix_peak", 0, 0, 1, [[0.5, 0.25], [0.5, 1.0]], operations=100),
        *rows("machine", "read_bandwidth", 0, 0, 1, [[0.5, 1.0], [0.1, 1.0]], least=50),
        *rows("tokentrail", "batch", 64, 8, 4, [[0.4, 0.8, 1.2], [0.88, 0.88, 0.88]], 40, 30, 20),
        *rows("tokentrail", "prefill", 10, 1, 1, [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]], 80, 30, 20),
    ]
)


def test_the_summary(tmp_path):
    summary = timing_summary.measure(SYNTHETIC, {"model": "m"})
    tables.write("timing_summary", summary, tmp_path / "t")
    batch, prefill = summary.to_dicts()
    assert (batch["median_ms"], batch["rounds"]) == (pytest.approx(200), 3)
    assert (batch["p10_ms"], batch["p90_ms"]) == (pytest.approx(120), pytest.approx(280))
    assert (batch["repeat_median_ms"], batch["drift"]) == (pytest.approx(220), pytest.approx(0.1))
    assert batch["tokens_per_second"] == pytest.approx(8 / 0.2)
    assert batch["parameter_bytes_per_second"] == pytest.approx(20 * 8 / 0.2), "a normalisation by tokens, not traffic"
    assert batch["least_bytes_per_second"] == pytest.approx(30 / 0.2)
    assert (batch["matrix_peak"], batch["read_bandwidth"]) == (400, 500), "the best round of either block"
    assert batch["fraction_of_peak"] == pytest.approx(40 / 0.2 / 400)
    assert batch["fraction_of_bandwidth"] == pytest.approx(30 / 0.2 / 500)
    assert prefill["tokens_per_second"] == pytest.approx(10 / 2.0)


def test_the_price_is_the_formulas(tmp_path):
    summary = timing_summary.measure(SYNTHETIC, {"model": "m"})
    settings = {"model": "m", "price_per_hour": 1.0, "occupancy": [1.0, 0.5]}
    frame = cost.measure(summary.with_columns(tokens_per_second=pl.lit(99.4)), settings)
    tables.write("cost", frame, tmp_path / "t")
    full, half = frame.filter(kind="batch")["dollars_per_million_tokens"]
    assert full == pytest.approx(2.79, abs=0.005), "one dollar an hour at 99.4 tokens a second"
    assert half == pytest.approx(2 * full)
    assert frame.filter(kind="batch")["step_latency_ms"].to_list() == pytest.approx([200, 200])


def test_the_machine_is_described(tmp_path):
    frame = machine.measure(SYNTHETIC, {"model": "m", "device": "cpu"})
    tables.write("machine", frame, tmp_path / "t")
    facts = dict(frame.select("fact", "value").iter_rows())
    assert facts["threads"] == "2" and facts["torch"] == torch.__version__
    assert facts["processor"] not in ("", "unknown")
    assert all(facts.values())


def test_the_work_of_a_call_is_that_of_the_published_shapes():
    """GPT-2: 124,439,808 parameters; one decode step reads all but the position rows it does not look up."""
    spec = read_spec(FULL_SHAPES["gpt2"])
    one = work(spec, rows=1, past=64, tokens=1)
    assert one.parameter_bytes == 124_439_808 * 4
    assert one.least_bytes == (124_439_808 - 1023 * 768) * 4 + 64 * 73_728
    matrices = 12 * (768 * 2304 + 768 * 768 + 2 * 768 * 3072) + 50_257 * 768
    assert one.operations == 2 * matrices + 12 * 4 * 768 * 65
    eight = work(spec, rows=8, past=64, tokens=1)
    assert eight.operations == 8 * one.operations
    assert eight.least_bytes - one.least_bytes == 7 * 64 * 73_728, "the weights serve all rows"
    prefill = work(spec, rows=1, past=0, tokens=10)
    assert prefill.operations == 10 * 2 * (matrices - 50_257 * 768) + 2 * 50_257 * 768 + 12 * 4 * 768 * 55


def test_an_own_head_leaves_the_token_table_unread():
    tied = read_spec(FULL_SHAPES["granite-4.0-h-350m"])
    own = read_spec(FULL_SHAPES["granite-4.0-h-350m"] | {"tie_word_embeddings": False})
    one, other = work(tied, 1, 64, 1), work(own, 1, 64, 1)
    assert other.operations == one.operations
    assert other.least_bytes - one.least_bytes == 4 * own.width, "one row of the token table"
    assert one.least_bytes > one.parameter_bytes, "keys, values and states come on top"
