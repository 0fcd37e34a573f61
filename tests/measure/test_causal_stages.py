"""The stages of the causal half: their tables fit, and their numbers obey what must hold for any model."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest
import torch
from house import measure_module
from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward, last
from tokentrail.forward.taps import Record
from tokentrail.measure import variants
from tokentrail.stages.ablations import measure as ablations
from tokentrail.stages.attention import measure as attention
from tokentrail.stages.attribution import measure as attribution
from tokentrail.stages.filler import filler_sweep, long_range
from tokentrail.stages.mixing import measure as mixing
from tokentrail.stages.next_token import measure as next_token
from tokentrail.stages.patching import measure as patching
from tokentrail.stages.sink import measure as sink
from tokentrail.tables.files import NOT_MEASURED, divided

SWAPPED = {"text": "In the morning, Carol gave Bob a book. Later, Bob gave the book back to", "target": " Carol"}
FILLER = {
    "head": "In the morning, Alice gave Bob a book.",
    "tail": "Later, Bob gave the book back to",
    "target": " Alice",
    "fillers": {"rain": "The capital of Japan is Tokyo.", "key": "Carol gave Tom a key."},
    "repeats": [0, 2, 1],
}


@pytest.fixture
def stage_settings(settings):
    alice = settings["prompts"]["alice"]
    texts = {"alice": alice["text"], "france": settings["prompts"]["france"]["text"], "swap": SWAPPED["text"]}
    return {
        "ablations": settings
        | {
            "prompts": {"alice": alice},
            "operations": ["zero", "mean", "resample"],
            "references": ["alice", "france"],
            "resample_from": {"alice": "swap"},
            "texts": texts,
            "memory_mb": 64,
        },
        "patching": settings
        | {
            "prompts": {"alice": alice, "swap": SWAPPED},
            "pairs": [{"prompt": "alice", "source": "swap"}],
            "sites": ["resid_pre", "mixer_out", "ffn_out", "ssm_state"],
            "memory_mb": 64,
        },
        "filler_sweep": settings | FILLER,
        "long_range": settings | FILLER,
        "sink": settings | {"replacement": "Carol"},
        "attribution": settings,
        "mixing": settings,
        "attention": settings,
    }


STAGES = ["ablations", "patching", "filler_sweep", "long_range", "sink", "attribution", "mixing", "attention"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_fits_its_schema_and_repeats_itself(loaded, stage_settings, stage, tmp_path):
    measure = measure_module(stage).measure
    for name in ("one", "two"):
        tables.write(stage, measure(loaded, stage_settings[stage]), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert tables.read(stage, tmp_path / "one").height > 0


@pytest.mark.parametrize("stage", ["sink", "attention", "patching", "filler_sweep", "long_range", "ablations"])
def test_nothing_to_measure_is_an_empty_table(loaded, stage_settings, stage, tmp_path):
    nothing = {"prompts": {}, "pairs": [], "fillers": {}}
    chosen = stage_settings[stage]
    empty = chosen | {key: value for key, value in nothing.items() if key in chosen}
    frame = measure_module(stage).measure(loaded, empty)
    tables.write(stage, frame, tmp_path / "t")
    assert tables.read(stage, tmp_path / "t").height == 0


def test_ablations_cover_every_part_and_start_clean(loaded, stage_settings):
    frame = ablations.measure(loaded, stage_settings["ablations"])
    spec = loaded.model.spec
    zeroed = frame.filter(operation="zero")
    assert zeroed.filter(component="mixer").height == zeroed.filter(component="ffn").height == len(spec.layers)
    assert zeroed.filter(component="head").height == sum(layer.mixer.heads for layer in spec.layers)
    clean = frame.row(0, named=True)
    said = next_token.measure(loaded, stage_settings["ablations"] | {"top_k": 1}).filter("is_target")
    assert (clean["component"], clean["operation"], clean["kl"]) == ("clean", "none", 0)
    assert clean["target_probability"] == pytest.approx(said["probability"][0], abs=1e-6)
    assert (frame["planned_edits"] == frame["applied_edits"]).all()
    kinds = {specs.kind_of(layer.mixer) for layer in spec.layers}
    assert {f"all {kind}" for kind in kinds} <= set(frame["component"])
    if "mamba2" in kinds:
        first = zeroed.filter(component="all mamba2").row(0, named=True)
        again = zeroed.filter(component="mamba2 from layer 0").row(0, named=True)
        assert first["target_probability"] == pytest.approx(again["target_probability"], abs=1e-6)


def test_resampling_from_itself_changes_nothing(loaded, stage_settings):
    chosen = stage_settings["ablations"] | {"operations": ["resample"], "resample_from": {"alice": "alice"}}
    frame = ablations.measure(loaded, chosen)
    assert frame["kl"].abs().max() < 1e-8


def test_a_switched_off_mixer_keeps_the_bias_of_its_output_projection(pair):
    model = pair("gpt2").ours()
    part = ablations.Part("mixer", "mixer", "attention", (1,))
    record = Record("mixer_out")
    from tokentrail.intervene.branching import AloneTap
    from tokentrail.intervene.interventions import Operation

    class Both(AloneTap):
        def __call__(self, site, layer, tensor):
            return record(site, layer, super().__call__(site, layer, tensor))

    with torch.inference_mode():
        forward(model, pair("gpt2").ids[:1, :5], tap=Both(part.variant(Operation("zero"))))
    bias = model.layers[1]["mixer"].cell.out.bias
    assert torch.allclose(record.seen["mixer_out", 1], bias.expand(1, 5, -1))


def test_patching_the_whole_stream_at_the_name_carries_everything(loaded, stage_settings):
    """Before the first layer the prompts differ at one position alone, and its stream is the name."""
    frame = patching.measure(loaded, stage_settings["patching"])
    first = frame.filter(site="resid_pre", layer=0)
    names = loaded.tokenizer.following("In the morning,", " Alice")
    if len(names) == 1:
        assert first["recovered"][0] == pytest.approx(1, abs=1e-3)
        assert first["recovered"][1:].abs().max() < 1e-3
    final = frame.filter(site="ffn_out", position=frame["position"].max())
    assert final.height == len(loaded.model.spec.layers)


def test_patching_from_an_equal_prompt_has_nothing_to_restore(loaded, stage_settings):
    alice = stage_settings["patching"]["prompts"]["alice"]
    same = stage_settings["patching"] | {"prompts": {"alice": alice, "swap": alice}}
    (reason,) = not_measured(patching.measure(loaded, same))
    assert "nothing to restore" in reason


@pytest.mark.parametrize("stage", ["patching", "ablations"])
def test_prompts_of_unequal_length_have_a_row_with_the_reason(loaded, stage_settings, stage):
    chosen = stage_settings[stage]
    longer = SWAPPED["text"].replace("book back", "big old book back")
    chosen = (
        chosen | {"prompts": chosen["prompts"] | {"swap": SWAPPED | {"text": longer}}}
        if stage == "patching"
        else chosen | {"texts": chosen["texts"] | {"swap": longer}}
    )
    (reason,) = not_measured(measure_module(stage).measure(loaded, chosen))
    assert "prompts alice and swap have" in reason


def test_a_pair_that_cannot_be_patched_leaves_the_good_pair(loaded, stage_settings):
    chosen = stage_settings["patching"]
    bad = {"prompt": "alice", "source": "short"}
    prompts = chosen["prompts"] | {"short": {"text": "In the morning", "target": " Alice"}}
    frame = patching.measure(loaded, chosen | {"prompts": prompts, "pairs": [bad, *chosen["pairs"]]})
    assert len(not_measured(frame)) == 1
    good, _ = divided(frame)
    assert good.equals(patching.measure(loaded, chosen))


def test_an_operation_that_cannot_be_done_leaves_the_others(loaded, stage_settings):
    chosen = stage_settings["ablations"]
    frame = ablations.measure(loaded, chosen | {"references": []})
    (reason,) = not_measured(frame)
    assert "needs a reference prompt" in reason
    kept, refused = divided(frame)
    assert refused["operation"].to_list() == ["mean"]
    assert set(kept["operation"]) == {"none", *chosen["operations"]} - {"mean"}


def not_measured(frame: pl.DataFrame) -> list[str]:
    return divided(frame)[1][NOT_MEASURED].to_list()


def test_shared_prefixes_say_what_whole_passes_say(loaded, stage_settings):
    from tokentrail.stages.filler.distance import inputs

    taps = variants.taps(loaded.model.spec)
    for series in inputs(loaded, stage_settings["filler_sweep"])[0]:
        for tap in taps.values():
            for one, logits in zip(series, filler_sweep.shared_prefixes(loaded, series, tap), strict=True):
                with torch.inference_mode():
                    whole = forward(loaded.model, one.ids, tap=tap, read=last(one.ids))[0, 0]
                assert (logits - whole).abs().max() < 1e-4


def test_the_sweep_says_where_a_model_has_no_position(loaded, stage_settings):
    frame = filler_sweep.measure(loaded, stage_settings["filler_sweep"] | {"repeats": [0, 40]})
    room = loaded.model.spec.learned_positions
    expected = "ok" if room is None else "exceeds_positions"
    assert set(frame.filter(repeats=40)["status"]) == {expected}
    if room is not None:
        assert frame.filter(repeats=40)["target_probability"].null_count() == frame.filter(repeats=40).height


def test_the_sweep_says_which_lengths_are_beyond_the_stated_context(loaded, stage_settings, caplog):
    context = 20
    spec = dataclasses.replace(loaded.model.spec, trained_positions=context)
    short = dataclasses.replace(loaded, model=dataclasses.replace(loaded.model, spec=spec))
    frame = filler_sweep.measure(short, stage_settings["filler_sweep"])
    assert set(frame["beyond_context"]) == {False, True}
    assert (frame["beyond_context"] == (frame["tokens"] > context)).all()
    assert (frame["status"] == "ok").all() and frame["target_probability"].null_count() == 0
    beyond = frame.filter("beyond_context").unique(["filler", "repeats"])
    warned = [record for record in caplog.records if f"beyond the {context} that" in record.getMessage()]
    assert len(warned) == beyond.height


def test_the_name_is_found_where_it_stands(loaded, stage_settings):
    from tokentrail.stages.filler.distance import stretched

    one = stretched(loaded, FILLER, "key", "Carol gave Tom a key.", 1)
    name = "".join(loaded.tokenizer.token(int(one.ids[0, p])) for p in one.name)
    assert name == " Alice"


def test_long_range_equals_the_explicit_weights_and_the_states_own_decay(loaded, stage_settings):
    """Attention: the row of one whole pass. Mamba2: what is left of a state of ones after the same tokens."""
    frame = long_range.measure(loaded, stage_settings["long_range"] | {"repeats": [1]}).filter(filler="rain")
    from tokentrail.stages.filler.distance import stretched

    one = stretched(loaded, FILLER, "rain", FILLER["fillers"]["rain"], 1)
    record = Record("pattern", "dt")
    with torch.inference_mode():
        forward(loaded.model, one.ids, tap=record)
    for i, layer in enumerate(loaded.model.spec.layers):
        rows = frame.filter(layer=i).sort("head")
        if isinstance(layer.mixer, specs.Attention):
            expected = record.seen["pattern", i][0, :, -1, list(one.name)].sum(-1)
            assert rows["attention_to_name"].to_list() == pytest.approx(expected.tolist(), abs=1e-5)
        else:
            fade = torch.exp(-torch.exp(loaded.model.layers[i]["mixer"].cell.A_log) * record.seen["dt", i][0])
            expected = fade[one.name[-1] + 1 :].prod(dim=0)
            assert rows["state_retention"].to_list() == pytest.approx(expected.tolist(), abs=1e-5)


def test_contributions_add_up_to_the_logits(loaded, stage_settings):
    frame = attribution.measure(loaded, stage_settings["attribution"])
    said = next_token.measure(loaded, stage_settings["attribution"])
    for prompt in stage_settings["attribution"]["prompts"]:
        rows, top = frame.filter(prompt=prompt), said.filter(prompt=prompt)
        assert rows["target_logit_contribution"].sum() == pytest.approx(top.filter("is_target")["logit"][0], abs=1e-4)
        rival = top.filter(~pl.col("is_target"))["logit"][0]
        assert rows["rival_logit_contribution"].sum() == pytest.approx(rival, abs=1e-4)


def test_unrolled_mixing_times_the_inputs_gives_what_the_heads_write(loaded, stage_settings):
    frame = mixing.measure(loaded, stage_settings["mixing"]).filter(prompt="france")
    ids = torch.tensor([loaded.tokenizer.encode("The capital of France is")])
    record = Record("v", "z", "conv_out", "ssm_y")
    with torch.inference_mode():
        forward(loaded.model, ids, tap=record)
    n = ids.shape[1]
    for i, layer in enumerate(loaded.model.spec.layers):
        cell, rows = layer.mixer, frame.filter(layer=i)
        weights = torch.zeros(cell.heads, n, n)
        at = (rows["head"].to_torch(), rows["query_position"].to_torch(), rows["key_position"].to_torch())
        weights[at] = rows["weight"].to_torch().float()
        if isinstance(cell, specs.Attention):
            v = record.seen["v", i][0].repeat_interleave(cell.heads // cell.kv_heads, dim=0)
            assert (weights @ v - record.seen["z", i][0]).abs().max() < 1e-4
        else:
            u = record.seen["conv_out", i][0, :, : cell.inner].view(n, cell.heads, cell.head_dim).transpose(0, 1)
            skip = loaded.model.layers[i]["mixer"].cell.D[:, None, None] * u
            assert (weights @ u + skip - record.seen["ssm_y", i][0].transpose(0, 1)).abs().max() < 1e-4


def test_a_replaced_first_token_is_replaced_under_every_bos_policy(loaded, stage_settings):
    """With a BOS token in place 0 it is BOS that goes, and never BOS that comes."""
    from dataclasses import replace

    import tiny_tokenizer
    from tokentrail.weights.tokenizer import Tokenizer

    with_bos = replace(loaded, tokenizer=Tokenizer(tiny_tokenizer.train(bos=True), "tokenizer", "tiny"))
    assert with_bos.tokenizer.encode("Carol")[0] == 0
    frame = sink.measure(with_bos, stage_settings["sink"])
    assert (frame.filter(intervention="replace_token")["kl"] > 1e-6).all()


def test_the_sink_is_measured_before_it_is_edited(loaded, stage_settings):
    frame = sink.measure(loaded, stage_settings["sink"])
    clean = frame.filter(intervention="none")
    assert (clean["kl"] == 0).all()
    attention = [i for i, layer in enumerate(loaded.model.spec.layers) if isinstance(layer.mixer, specs.Attention)]
    masked = frame.filter(intervention="mask", layer=attention[0])
    assert masked["weight_on_first"].to_list() == pytest.approx(
        clean.filter(layer=attention[0])["weight_on_first"].to_list(), abs=1e-6
    )
    assert set(frame["intervention"]) == {"none", "mask", "drop_value", "renormalise", "replace_token"}
    assert (frame.filter(pl.col("intervention") != "none")["kl"] > 0).all()


def test_the_last_querys_weight_on_position_0_is_that_of_the_attention_table(loaded, stage_settings):
    rows = attention.measure(loaded, stage_settings["attention"])
    by_layer = rows.group_by("prompt", "layer").agg(pl.col("weight_on_first").mean()).sort("prompt", "layer")
    clean = sink.measure(loaded, stage_settings["sink"]).filter(intervention="none").sort("prompt", "layer")
    common = clean.filter(pl.col("prompt").is_in(by_layer["prompt"].to_list()))
    assert common["last_weight_on_first"].to_list() == pytest.approx(by_layer["weight_on_first"].to_list(), abs=1e-6)


def test_what_an_intervention_on_position_0_answers(loaded, stage_settings):
    frame = sink.measure(loaded, stage_settings["sink"])
    for row in frame.filter(intervention="none").to_dicts():
        prompt = stage_settings["sink"]["prompts"][row["prompt"]]
        ids = torch.tensor([loaded.tokenizer.encode(prompt["text"])])
        with torch.inference_mode():
            p = forward(loaded.model, ids, read=last(ids))[0, 0].double().softmax(0)
        assert row["top1_probability"] == pytest.approx(p.max().item(), abs=1e-5)
        assert row["top1_token"] == loaded.tokenizer.token(int(p.argmax()))
    assert frame.group_by("prompt", "intervention").agg(pl.col("top1_token").n_unique())["top1_token"].max() == 1
