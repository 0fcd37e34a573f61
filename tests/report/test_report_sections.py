"""Sentences on the interventions: all, none and some; exceptions told and counted; parts that a model lacks."""

import polars as pl
import pytest
import synthetic_tables as synthetic
from markupsafe import Markup
from tokentrail.stages.ablations import section as ablations
from tokentrail.stages.attribution import section as attribution
from tokentrail.stages.cache import section as cache
from tokentrail.stages.filler import section as distance
from tokentrail.stages.mixing import section as mixing
from tokentrail.stages.patching import section as patching
from tokentrail.stages.sink import section as sink
from tokentrail.stages.timing import section as timing
from tokentrail.wording import words

ALICE = words.chip(" Alice")


def plain(markup) -> str:
    return Markup(markup).striptags().replace("\u00a0", " ")


def ablated(*rows):
    """component, mixer, layers, operation, probability, first token"""
    return pl.DataFrame(
        [
            {"prompt": "alice", "component": component, "mixer": mixer, "layers": layers, "heads": ""}
            | {"operation": operation}
            | {"target_probability": p, "target_rank": 0 if first == " Alice" else 9, "top1_token": first}
            | {"planned_edits": 1 if component in ("mixer", "ffn") else 12}
            for component, mixer, layers, operation, p, first in rows
        ]
    )


def mixers(*firsts, operation="zero"):
    return ablated(*(("mixer", "attention", str(i), operation, 0.9 - i / 100, first) for i, first in enumerate(firsts)))


@pytest.mark.parametrize(
    ("firsts", "said"),
    [
        (
            [" Alice"] * 3,
            "With one attention layer at a time set to zero, ·Alice stays first in all 3 cases, with probability "
            "0.880 or more (least in layer 2).",
        ),
        (
            [" Web", " Alice", " Alice"],
            "With one attention layer at a time set to zero, ·Alice stays first in 2 of 3 cases, with probability "
            "0.880 or more (least in layer 2). The exception is layer 0, without which ·Web comes first and ·Alice "
            "has probability 0.900.",
        ),
        (
            [" Web", " a", " Alice"],
            "With one attention layer at a time set to zero, ·Alice stays first in 1 of 3 cases, with probability "
            "0.880 or more (least in layer 2). The exceptions are layer 0, without which ·Web comes first and ·Alice "
            "has probability 0.900; and layer 1, without which ·a comes first and ·Alice has probability 0.890.",
        ),
        (
            [" a", " b", " b", " c"],
            "With one attention layer at a time set to zero, ·Alice stays first in none of 4 cases. It does not in "
            "layers 0 to 3; there ·b comes first most often (2 of 4).",
        ),
    ],
)
def test_single_layers(firsts, said):
    assert plain(ablations.singles(mixers(*firsts), "attention layer", ALICE)) == said


def test_the_other_operations_follow_in_one_sentence():
    rows = pl.concat(
        [
            mixers(" Alice", " Alice"),
            mixers(" Alice", " Alice", operation="mean"),
            mixers(" Alice", " Carol", operation="resample"),
        ]
    )
    assert plain(ablations.singles(rows, "FFN", ALICE)).endswith(
        "With the mean over other prompts in place, it does in both cases; with what another prompt puts there, in 1 "
        "of 2 cases, not in layer 1, where ·Carol comes first."
    )
    assert ablations.singles(rows.clear(), "FFN", ALICE) == ""


def test_whole_sets():
    rows = ablated(
        ("all attention", "attention", "0-11", "resample", 0.002, " Carol"),
        ("all attention", "attention", "0-11", "zero", 0.988, " Alice"),
    )
    clean = ablated(("clean", "", "", "none", 0.995, " Alice"))
    assert plain(ablations.whole_set(rows, clean, "attention", ALICE)) == (
        "All 12 attention layers off (with nothing changed, 0.995): set to zero, ·Alice stays first with probability "
        "0.988; with what another prompt "
        "puts there, ·Carol comes first (·Alice at 0.002)."
    )
    two = plain(ablations.whole_set(rows.with_columns(planned_edits=2), clean, "attention", ALICE))
    assert two.startswith("Both attention layers off")
    assert ablations.whole_set(rows.clear(), clean, "attention", ALICE) == ""


@pytest.mark.parametrize(
    ("firsts", "said"),
    [
        ([" Alice", " Alice"], "·Alice stays first however many there are, with probability 0.500 or more"),
        ([" a", " a"], "·Alice gives way to ·a without the last one alone"),
        (
            [" a", " Alice", " b", " Alice"],
            "·Alice stays first from layer 3 on, with probability 0.500 or more, and from layer 2 on gives way to ·b",
        ),
    ],
)
def test_mamba2_from_a_layer_on(firsts, said):
    rows = ablated(*((f"mamba2 from layer {i}", "mamba2", "", "zero", 0.5, first) for i, first in enumerate(firsts)))
    opening = "With the Mamba2 layers from some layer to the end off: set to zero, "
    assert plain(ablations.from_layer(rows, ALICE)) == f"{opening}{said}."
    kept = rows.with_columns(operation=pl.lit("mean"), target_rank=pl.lit(0, pl.Int64))
    both = plain(ablations.from_layer(pl.concat([kept, rows]), ALICE))
    assert (
        both == f"{opening}{said}; with the mean over other prompts in place, ·Alice stays first however many there "
        "are, with probability 0.500 or more."
    )


def test_the_story_of_ablations():
    """One row that contradicts, of any operation, is told."""
    clean = ablated(("clean", "", "", "none", 0.95, " Alice"))
    zero, mean = mixers(" Alice", " Alice", " Alice"), mixers(" Alice", " Alice", " Alice", operation="mean")
    assert plain(ablations.story(pl.concat([clean, zero, mean]))) == (
        "Does it stay first? With one mixer off, in all 3 cases, whichever of the 2 ways is taken (probability 0.880 "
        "or more)."
    )
    swapped = mixers(" Alice", " Alice", " Carol", operation="resample")
    assert plain(ablations.story(pl.concat([clean, zero, mean, swapped]))) == (
        "Does it stay first? With one mixer off, in all 3 cases set to zero, in all 3 cases with the mean over other "
        "prompts in place and in 2 of 3 cases with what another prompt puts there (not in layer 2)."
    )
    heads = pl.concat(
        [ablated(("head", "attention", "0", "zero", 0.0083, " ."), ("head", "attention", "0", "zero", 0.9, " Alice"))]
    ).with_columns(heads=pl.Series(["2", "3"]))
    assert plain(ablations.story(pl.concat([clean, zero, heads]))).endswith(
        "; with one head off, in 1 of 2 cases set to zero (not in head 2 of layer 0)."
    )
    off = ablated(
        ("all attention", "attention", "", "zero", 0.003, " Web"),
        ("all attention", "attention", "", "mean", 0.001, " Web"),
        ("all mamba2", "mamba2", "", "zero", 0.197, " Alice"),
        ("all mamba2", "mamba2", "", "mean", 0.121, " Bob"),
        ("all mamba2", "mamba2", "", "resample", 0.95, " Alice"),
    )
    assert plain(ablations.story(pl.concat([clean, off]))) == (
        "Does it stay first? With all 12 attention layers off, another token comes first, whichever of the 2 ways is "
        "taken (its 0.950 falls to 0.001 to 0.003); with all 12 Mamba2 layers off, set to zero it stays first (0.950 "
        "falls to 0.197), with the mean over other prompts in place it gives way to ·Bob (0.950 falls to 0.121) and "
        "with what another prompt puts there it stays first (0.950 as before)."
    )
    assert ablations.story(zero) == "" and ablations.story(clean.clear()) == ""
    wrong = ablated(("clean", "", "", "none", 0.1, " the"))
    assert ablations.story(pl.concat([wrong, zero])) == "", "what is not first cannot stay so"
    assert "read what follows with care" in plain(ablations.unchanged(wrong, ALICE))


def test_tokens_that_come_first_equally_often_are_all_told():
    said = plain(ablations.singles(mixers(" a", " b", " b", " a"), "FFN", ALICE))
    assert said.endswith("there ·a and ·b come first most often (2 of 4 each).")


def swept(*rows):
    """variant, distance, probability, first token; probability None is a length without positions"""
    return pl.DataFrame(
        [
            {"filler": "town", "repeats": 0, "tokens": distance + 5, "distance": distance, "variant": variant}
            | {"target_probability": p, "target_rank": None if p is None else int(first != " Alice")}
            | {"top1_token": first, "status": "exceeds_positions" if p is None else "ok", "beyond_context": False}
            for variant, distance, p, first in rows
        ]
    )


def test_the_distance_sentence():
    rows = swept(
        ("as_trained", 13, 0.8, " Alice"),
        ("as_trained", 100, 0.3, " the"),
        ("attention_off", 13, 0.0001, " a"),
        ("attention_off", 100, 0.0002, " b"),
    )
    assert plain(distance.swept(rows)) == (
        "As trained, the name is the first answer 13 tokens back (probability 0.800), but not 100 tokens back "
        "(probability 0.300), where ·the comes first. With all attention off, it is so at none of these distances (13 "
        "and 100 tokens back), with a probability below 0.001; ·a and ·b come first."
    )
    assert plain(distance.story(rows, {"town": "In the rain."}, mixes=False)) == (
        "With other text in between, the name is first over town at 1 of 2 distances (13 tokens back); worst 100 "
        "tokens back, at rank 1, where ·the, a word of that text, comes first. With all attention off it is so in none "
        "of 2 cases, with a probability below 0.001; nothing else in this model moves anything from one "
        "position to another."
    )
    far = swept(("as_trained", 13, 0.8, " Alice"), ("as_trained", 100, 0.8, " Alice"))
    people = pl.concat([far, rows.with_columns(filler=pl.lit("people"))])
    assert plain(distance.story(people, {}, mixes=True)) == (
        "With other text in between, the name is first over town at both distances, up to 100 tokens back; over people "
        "at 1 of 2 distances (13 tokens back); worst 100 tokens back, at rank 1, where ·the comes first. With all "
        "attention off it is so in none of 2 cases, with a probability below 0.001."
    ), "a filler that contradicts another is told beside it"


def test_lengths_without_positions_are_told():
    rows = swept(("as_trained", 13, 0.8, " Alice"), ("as_trained", 1405, None, None))
    assert plain(distance.swept(rows)).endswith(
        "(probability 0.800). The model has no positions for 1,410 tokens, so this length was not run."
    )
    assert plain(distance.story(rows, {}, mixes=True)) == (
        "With other text in between, the name is first over town at the one distance that it has positions for, up to "
        "13 tokens back."
    )
    assert distance.story(rows.clear(), {}, mixes=True) == "" and distance.swept(rows.clear()) == ""


def test_lengths_beyond_the_stated_context_are_told():
    rows = swept(("as_trained", 13, 0.8, " Alice"), ("as_trained", 100, 0.3, " the"), ("as_trained", 1405, None, None))
    beyond = rows.with_columns(beyond_context=pl.col("distance") > 13)
    said = "105 tokens are more than the context that the checkpoint states, and were measured all the same."
    assert plain(distance.swept(beyond)).endswith(said), "what was not run was not measured"
    assert said not in plain(distance.swept(rows))


def reach(mixer, values):
    attention = mixer == "attention"
    return pl.DataFrame(
        [
            {"distance": d, "layer": layer, "head": head, "attention_to_name": value if attention else None}
            | {"state_retention": None if attention else value}
            for d, layer, head, value in values
        ],
        schema_overrides={"attention_to_name": pl.Float64, "state_retention": pl.Float64},
    )


def test_what_reaches_the_end():
    attention = reach("attention", [(13, 0, 0, 0.6), (13, 1, 0, 0.1), (1405, 0, 0, 0.1), (1405, 1, 2, 0.48)])
    assert plain(distance.reached(attention)) == (
        "At 1,405 tokens, the last token’s largest attention weight on the name is 0.480, of head 2 in layer 1 (at 13, "
        "0.600, of head 0 in layer 0)."
    )
    mamba2 = reach("mamba2", [(13, 0, 0, 1.0), (1405, 0, 0, 0.86), (1405, 0, 1, 1e-5), (1405, 1, 0, 0.0)])
    assert plain(distance.reached(mamba2)) == (
        "Of what the name wrote into the Mamba2 states, the head that keeps most (head 0 in layer 0) still holds 0.860 "
        "at 1,405 tokens, the median head 1.0 × 10−5; 1 of 3 heads hold a tenth or more."
    )
    assert distance.reached(mamba2.clear()) == ""


def test_where_the_name_is_carried():
    def row(site, layer, position, recovered, mixer="attention"):
        return {"site": site, "mixer": mixer, "layer": layer, "position": position, "token": f" t{position}"} | {
            "recovered": recovered
        }

    rows = pl.DataFrame([row("resid_pre", layer, 4 if layer < 3 else 9, 0.9) for layer in range(6)])
    assert plain(patching.stream(rows)) == (
        "The stream into a layer moves the answer at least halfway to the other name at ·t4 (position 4) in layers 0 "
        "to 2 and ·t9 (position 9) in layers 3 to 5."
    )
    assert "At no single token" in plain(patching.stream(rows.with_columns(recovered=pl.lit(0.1))))
    parts = pl.DataFrame(
        [row("mixer_out", 2, 9, 0.8), row("mixer_out", 1, 9, 0.1, "mamba2"), row("ssm_state", 1, 5, 0.3, "mamba2")]
    )
    assert plain(patching.parts(parts)) == (
        "With 1 for all the way, the largest moves are +0.80 by one attention layer’s output (layer 2 at ·t9, position "
        "9), +0.10 by one Mamba2 layer’s output (layer 1 at ·t9, position 9) and +0.30 by one Mamba2 state (layer 1 at "
        "·t5, position 5)."
    )
    assert patching.parts(parts.clear()) == "" and patching.stream(parts.clear()) == ""


def test_attribution_adds_up():
    def row(site, layer, head, mixer, difference):
        return {"site": site, "layer": layer, "head": head, "mixer": mixer, "difference": difference} | {
            "target_token": " Alice",
            "rival_token": " the",
        }

    rows = pl.DataFrame(
        [row("embed", 0, None, "", -0.5), row("z", 0, 1, "attention", 2.0), row("ffn_out", 0, None, "", 1.0)],
        schema_overrides={"head": pl.Int64},
    )
    rows = rows.with_columns(target_logit_contribution=pl.Series([0.5, 1.0, 3.0]))
    assert plain(attribution.said(rows, 0.043)) == (
        "The logit of ·Alice is 2.50 higher than that of its rival ·the (with probability 0.043): the embedding adds "
        "−0.50, attention +2.00 and the FFNs +1.00. For the target minus rival, the attention mixer of layer 0 adds "
        "most, +2.00; of single heads, head 1 of layer 0, +2.00. For the target alone, the FFN of layer 0 adds most, "
        "+3.00; of single heads, head 1 of layer 0, +1.00."
    )
    assert "so unlikely a rival" in plain(attribution.said(rows, 0.0002))
    assert "(" not in plain(attribution.said(rows, None)), "without the rival's probability none is told"
    tied = rows.with_columns(difference=pl.Series([-0.5, 1.0, 1.001]))
    assert "the attention mixer of layer 0 and the FFN of layer 0 add most, +1.00" in plain(attribution.said(tied, 0.1))
    of = {"embedding": -0.5, "attention": 2.0, "mamba2": None, "ffn": 1.0, "bias": None}
    assert attribution.sums(rows, "difference") == of
    assert attribution.said(rows.clear(), None) == ""


def sunk(**kl):
    return pl.DataFrame(
        [
            {"model": "m", "prompt": prompt, "intervention": kind, "layer": layer}
            | {"weight_on_first": 0.2 + 0.4 * layer}
            | {"kl": value + (kind != "none" and prompt == "q")}
            for prompt in ("p", "q")
            for kind, value in ({"none": 0.0} | kl).items()
            for layer in (0, 1)
        ]
    )


def positions(count, prompts=("p", "q")):
    return pl.DataFrame([{"model": "m", "prompt": name, "position": at} for name in prompts for at in range(count)])


def test_the_first_token():
    rows = sunk(mask=0.5, drop_value=1.0, renormalise=6.0, replace_token=0.02)
    assert plain(sink.weight(rows, positions(5))) == (
        "On average over layers and 2 prompts, 0.400 of the attention weight lies on the first token, from 0.200 in "
        "layer 0 to 0.600 in layer 1; attention spread evenly over what can be seen would put 0.321 there. A layer "
        "counts as a sink from 2 times that in every prompt: none of 2 attention layers does, and 1 has less than the "
        "even weight."
    )
    assert "1 of 2 attention layers does." in plain(sink.weight(rows, positions(18)))
    assert plain(sink.moved(rows)) == (
        "Giving its weight to the others moves the prediction by 6.50 nats on average over 2 prompts (6.00 to 7.00), "
        "dropping its value by 1.50 (1.00 to 2.00), hiding it by 1.00 (0.500 to 1.50) and putting another token there "
        "by 0.520 (0.0200 to 1.02). Hiding it drops its value and gives its weight to the others at once; of the two "
        "done alone, the second moves the prediction more in both cases, the first in none of 2 cases, and both "
        "together move it less than either on average."
    )
    one = sunk(mask=3.0, drop_value=2.0, renormalise=1.0).filter(pl.col("prompt") == "p")
    assert plain(sink.moved(one)) == (
        "Hiding it moves the prediction by 3.00 nats, dropping its value by 2.00 and giving its weight to the others "
        "by 1.00. Hiding it drops its value and gives its weight to the others at once; of the two done alone, the "
        "second moves the prediction more not in the one case, the first in the one case."
    )
    floor = plain(sink.moved(sunk(mask=3e-8, drop_value=2e-8, renormalise=1e-8).filter(pl.col("prompt") == "p")))
    assert floor.endswith("the first not in the one case; below 1.0 × 10−6 nats nothing is told apart.")
    assert sink.moved(sunk()) == "" and sink.weight(rows.clear(), positions(5)) == ""


def test_spans_of_layers():
    assert words.ranges([0]) == "0"
    assert words.ranges([0, 1]) == "0 and 1"
    assert words.ranges([0, 1, 2, 3, 7, 9, 10]) == "0 to 3, 7, 9 and 10"


def cached(*rows):
    """kind, our difference, transformers' difference, tokens held; the state is 100 bytes and a token 8"""
    return pl.DataFrame(
        [
            {"prompt": "king", "kind": kind, "max_abs_logit_diff": ours, "reference_max_abs_logit_diff": theirs}
            | {"max_abs_error_ours": ours / 2, "max_abs_error_reference": theirs / 2, "top1_agrees": True}
            | {"cache_tokens": tokens, "kv_bytes": 8 * tokens, "conv_bytes": 40, "state_bytes": 60}
            | {"formula_bytes": 8 * tokens + 100}
            for kind, ours, theirs, tokens in rows
        ]
    )


def test_the_cache_agrees():
    rows = cached(("decode", 2e-5, 1e-5, 5), ("decode", 3e-5, 2e-5, 6), ("continuation", 1e-5, 1e-5, 7))
    assert plain(cache.agreement(rows)) == (
        "Logits from the cache differ from recomputed ones by at most 3.0 × 10−5 token by token and 1.0 × 10−5 with "
        "several tokens in one call. Both name the same first token in all 3 calls. Against recomputation in "
        "float64, ours is off by up to 1.5 × 10−5 and transformers’ by 1.0 × 10−5; its own cached pass differs from "
        "its full one by up to 2.0 × 10−5."
    )
    assert plain(cache.held(rows)) == (
        "In a row’s cache, each token adds 8 bytes of keys and values and convolution windows and states take 100 "
        "bytes however many tokens were read; the sum equals the formula in every call."
    )


def test_a_cache_that_does_not_agree_is_told():
    rows = cached(("decode", 2e-5, 0.1, 5), ("decode", 3e-5, 2e-5, 6))
    assert plain(cache.agreement(rows)).endswith("by up to 1.0 × 10−1, token by token of king.")
    empty = pl.lit(None, dtype=pl.Float64)
    alone = rows.with_columns(reference_max_abs_logit_diff=empty, max_abs_error_reference=empty)
    assert plain(cache.agreement(alone)).endswith("; transformers keeps no cache of a model without attention.")
    other = rows.with_columns(top1_agrees=pl.Series([True, False]), formula_bytes=pl.col("formula_bytes") + 1)
    assert "They name different first tokens in 1 of 2 calls." in plain(cache.agreement(other))
    assert plain(cache.held(other)).endswith("the sum equals the formula in only 0 of 2 calls.")


def timed(*rows):
    """implementation, kind, context, rows, median in ms; the repetition takes a tenth longer"""
    return pl.DataFrame(
        [
            {"model": "m", "implementation": name, "kind": kind, "context": context, "batch": batch, "median_ms": ms}
            | {"drift": 0.1, "rounds": 7, "threads": 2, "status": "ok", "matrix_peak": 2e11, "read_bandwidth": 5e10}
            | {f"{end}_ms": 0.9 * ms for end in ("low", "min")}
            | {f"{end}_ms": 1.1 * ms for end in ("high", "max", "repeat_median")}
            | {"fraction_of_bandwidth": 10 / ms, "fraction_of_peak": 20 / ms}
            for name, kind, context, batch, ms in rows
        ]
    )


def test_times_beside_the_limits():
    rows = timed(("tokentrail", "decode", 8, 1, 20.0), ("tokentrail", "batch", 64, 8, 25.0))
    said = plain(timing.limits(pl.concat([rows, timed(("tokentrail", "prefill", 128, 1, 40.0))])))
    assert said == (
        "With 2 threads, the same process measured 200 GFLOP/s in a large float32 product and 50.0 GB/s reading "
        "memory. Decode reads what it must read once at up to 50.0% of that bandwidth (1 row after 8 tokens); prefill "
        "computes at up to 50.0% of that peak (prefill of 128 tokens)."
    )
    assert plain(timing.limits(rows)).endswith("(1 row after 8 tokens).")
    near = timed(("tokentrail", "decode", 8, 1, 20.0), ("tokentrail", "batch", 64, 1, 20.5))
    assert plain(timing.limits(near)).endswith("(1 row after 8 tokens; the rounds of 1 of 1 other case reach as far).")


def test_a_median_that_stays_among_the_rounds_did_not_drift():
    rows = timed(("tokentrail", "decode", 8, 1, 20.0), ("tokentrail", "batch", 64, 8, 25.0))
    assert plain(timing.drift(rows)) == (
        "From the first block of 7 rounds to its repetition, no median of 2 cases moved out of the span of the first "
        "block; the most that any moved is from 20.0 to 22.0 ms (1 row after 8 tokens, within its rounds)."
    )
    moved = rows.with_columns(drift=pl.Series([0.1, 0.7]), repeat_median_ms=pl.Series([22.0, 42.5]))
    assert plain(timing.drift(moved)) == (
        "From the first block of 7 rounds to its repetition, the medians of 1 of 2 cases moved out of the span of the "
        "first block; the most that any moved is from 25.0 to 42.5 ms (8 rows after 64 tokens)."
    )


def test_peers_are_compared_case_by_case_with_the_faster_of_them():
    ours = timed(("tokentrail", "decode", 8, 1, 20.0), ("tokentrail", "batch", 64, 8, 25.0))
    assert timing.peers(ours) == ""
    theirs = timed(
        ("transformers eager", "decode", 8, 1, 50.0),
        ("transformers sdpa", "decode", 8, 1, 30.0),
        ("transformers sdpa", "batch", 64, 8, 20.0),
    )
    assert plain(timing.peers(pl.concat([ours, theirs]))) == (
        "Against the faster of transformers’ paths in the same rounds, ours is 0.800 to 1.50 times as fast (8 rows "
        "after 64 tokens; 1 row after 8 tokens)."
    )
    close = pl.concat([ours, timed(("transformers sdpa", "decode", 8, 1, 22.0))])
    assert plain(timing.peers(close)).endswith("rounds, 1 of 1 case is not told apart by the rounds.")


def test_batches_have_their_price_and_what_was_skipped_its_reason():
    first, _, gamma, _ = timing.view(synthetic.tables(4), synthetic.settings(4))
    assert {row["name"] for row in first["cases"]} == {"Decode", "Prefill"}
    prices = [(row["batch"], row["occupancy"], row["dollars_per_million_tokens"]) for row in first["prices"]]
    assert [price[:2] for price in prices] == [(rows, share) for rows in (1, 2, 8) for share in (1.0, 0.5)]
    assert prices[1][2] == pytest.approx(2 * prices[0][2])
    assert [row["reason"] for row in gamma["cases"] if row["status"] == "skipped"] == [
        "1008 tokens, but the model has 1000 positions"
    ]


@pytest.mark.parametrize("section", [ablations, attribution, cache, distance, mixing, patching, sink, timing])
def test_views_follow_the_configured_models_and_their_absence(section):
    settings = synthetic.settings(4)
    assert section.view(synthetic.empty(), settings) == []
    entries = section.view(synthetic.tables(4), settings)
    expected = [0, 1, 2] if section is sink else [0, 1, 2, 3]
    assert [entry["index"] for entry in entries] == expected


def test_the_summary_has_only_parts_that_the_model_has():
    of = {
        entry["index"]: {row["part"] for row in entry["parts"]}
        for entry in ablations.view(synthetic.tables(4), synthetic.settings(4))
    }
    assert not any("Mamba2" in part for part in of[0])
    assert not any("attention" in part for part in of[3])
    assert {"one attention head", "one Mamba2 head", "all attention", "Mamba2 from a layer on"} <= of[1]
