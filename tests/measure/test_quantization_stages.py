"""The stages of quantization: their tables fit, and their numbers obey what must hold for any model."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest
import tiny_tokenizer
import torch
from packable_models import widened
from random_models import build
from safetensors.torch import load_file, save_file
from tokentrail import config, tables
from tokentrail.errors import ConfigError, PromptError, QuantizationError
from tokentrail.forward.frame import forward
from tokentrail.measure import rounds
from tokentrail.measure.answers import log_probabilities
from tokentrail.quantize.parts import parts, quantizable
from tokentrail.quantize.payload import model_payload
from tokentrail.stages.quantization import (
    passages,
    quantization,
    quantization_error,
    quantization_quality,
    quantization_timing,
)
from tokentrail.stages.quantization import section as quantization_section
from tokentrail.stages.quantization.settings import QuantizationScheme
from tokentrail.tables.files import divided
from tokentrail.weights.load import Loaded, load_model
from tokentrail.weights.tokenizer import Tokenizer

SCHEMES = {
    "q8": {"bits": 8, "group_size": 64},
    "q4": {"bits": 4, "group_size": 64},
    "q4-each": {"bits": 4, "group_size": 32, "one_at_a_time": True},
    "q4-table-in": {"bits": 4, "group_size": 32, "weights": ["tokens.input"]},
    "q4-packed": {"bits": 4, "group_size": 32, "scales": "bfloat16", "packed": True},
    "q3-packed": {"bits": 3, "group_size": 32, "scales": "bfloat16", "packed": True},
    "q4-mamba": {"bits": 4, "group_size": 32, "weights": ["mamba2.in_proj"]},
}
TEXT = "In the morning, Alice gave Bob a book. The capital of Japan is Tokyo. Carol and Mirabel met Tom. " * 3


@pytest.fixture(scope="module", params=["gpt2", "qwen3-tied-bias", "granite-nope"])
def made(request, tmp_path_factory):
    """A model that can be packed, with a tokenizer: called, it gives a fresh Loaded, whose weights may be changed."""
    inner = tiny_tokenizer.train()
    pair = build(
        widened(request.param) | {"vocab_size": inner.get_vocab_size() + 8}, tmp_path_factory.mktemp("packable")
    )
    tokenizer = Tokenizer(inner, "tokenizer", "tiny")
    return lambda: Loaded(pair.ours(), tokenizer, pair.checkpoint, torch.device("cpu"))


@pytest.fixture
def chosen(tmp_path):
    """Settings of each stage, as the configuration gives them."""
    (tmp_path / "passage.txt").write_text(TEXT)
    parsed = config.parse(
        {
            "run": "r",
            "title": "t",
            "models": {"tiny": {"label": "Tiny", "source": {"kind": "folder", "path": "models/tiny"}}},
            "prompts": {"france": {"text": "The capital of France is", "target": " Paris"}},
            "stages": {
                "quantization": {
                    "schemes": SCHEMES,
                    "passages": {"short": str(tmp_path / "passage.txt")},
                    "window": 64,
                    "errors": ["q4", "q4-table-in"],
                    "bootstrap": {"samples": 100},
                    "times": {"context": 4, "steps": 1, "prefill": 5, "rounds": 2},
                }
            },
        }
    )
    return lambda stage: config.settings(parsed, stage, "tiny")


@pytest.fixture(autouse=True)
def reads_everything(monkeypatch):
    """Random models are worse than a uniform guess on any text; what is tested of them here does not mind."""
    monkeypatch.setattr(quantization_quality, "unreadable", lambda *about: "")


@pytest.fixture
def quality(made, chosen):
    return quantization_quality.measure(made(), chosen("quantization_quality"))


def test_tables_fit_and_the_untimed_ones_repeat_themselves(made, chosen, quality, tmp_path):
    errors = [quantization_error.measure(made().checkpoint, chosen("quantization_error")) for _ in range(2)]
    again = quantization_quality.measure(made(), chosen("quantization_quality"))
    timing = quantization_timing.measure(made().checkpoint, chosen("quantization_timing"))
    joined = quantization.measure(quality, timing, chosen("quantization"))
    for table, frames in {
        "quantization_quality": [quality, again],
        "quantization_error": errors,
        "quantization_timing": [timing],
        "quantization": [joined],
    }.items():
        for number, frame in enumerate(frames):
            tables.write(table, frame, tmp_path / f"{number}")
        if len(frames) == 2:
            assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
        assert tables.read(table, tmp_path / "0").height > 0
    ran = joined.filter(pl.col("execution") != "simulated", pl.col("status") == "ok")
    assert ran["scheme"].to_list() == ["float32", "bfloat16", "q4-packed"]
    assert ran.select("decode_ms", "prefill_ms", "resident_bytes").null_count().row(0) == (0, 0, 0)
    rest = joined.filter((pl.col("execution") == "simulated") | (pl.col("status") == "skipped"))
    assert rest["decode_ms"].null_count() == rest.height > 0
    assert joined.height == quality.height


def test_without_schemes_nothing_is_measured(made, chosen):
    loaded = made()
    for stage, run in {
        "quantization_quality": lambda s: quantization_quality.measure(loaded, s),
        "quantization_timing": lambda s: quantization_timing.measure(loaded.checkpoint, s),
        "quantization_error": lambda s: quantization_error.measure(loaded.checkpoint, s),
    }.items():
        frame = run(chosen(stage) | {"schemes": {}})
        assert frame.height == 0 and set(frame.columns) == set(tables.schema_of(stage).column_names())


def test_rows_are_the_schemes_and_say_what_they_quantize(made, quality):
    spec = made().model.spec
    one_by_one = quality.filter(scheme="q4-each")["families"].to_list()
    assert one_by_one == list(parts(spec))
    has_mamba = any(part.startswith("mamba2") for part in one_by_one)
    assert quality.filter(scheme="q4-mamba").height == has_mamba
    assert quality.filter(scheme="q4-table-in").height == spec.tied
    assert quality.filter(scheme="q4")["detail"].to_list() == [
        "4 bits, groups of 64 along the input, symmetric, largest weight / 7, float16 scales"
    ]
    assert quality["payload_bytes"][0] == model_payload(spec)
    assert quality.filter(scheme="q8")["compression"][0] == pytest.approx(
        quality["payload_bytes"][0] / quality.filter(scheme="q8")["payload_bytes"][0]
    )


def test_the_float32_row_is_the_identity_and_fewer_bits_move_further(quality):
    first = quality.row(0, named=True)
    assert (first["kl"], first["mean_kl"], first["top1_agreement"]) == (0, 0, 1)
    eight, four = (quality.filter(scheme=name).row(0, named=True) for name in ("q8", "q4"))
    assert 0 < eight["mean_kl"] < four["mean_kl"] / 5
    for row in (eight, four):
        for quantity in ("perplexity", "mean_kl", "top1_agreement"):
            assert row[f"{quantity}_low"] <= row[quantity] <= row[f"{quantity}_high"]


def test_at_eight_bits_kl_falls_towards_zero_as_the_group_shrinks(made, chosen):
    settings = chosen("quantization_quality")
    common = settings["schemes"]["q8"] | {"scales": "float32"}
    schemes = {f"q8-{size}": common | {"group_size": size} for size in (64, 8, 2)} | {
        "q8-alone": common | {"group_size": 2, "symmetric": False}  # two codes reach two weights exactly
    }
    frame = quantization_quality.measure(made(), settings | {"schemes": schemes})
    moved = frame.filter(execution="simulated")["mean_kl"].to_list()
    assert moved == sorted(moved, reverse=True) and moved[2] < moved[0] / 2
    assert moved[3] < 1e-7


def test_packed_stands_beside_simulated_and_what_cannot_be_packed_is_named(quality):
    both = quality.filter(scheme="q4-packed")
    assert both["execution"].to_list() == ["simulated", "packed"]
    simulated, packed = both.to_dicts()
    assert packed["parity_float32"] < 1e-4 and packed["parity_bfloat16"] > 0
    assert packed["mean_kl"] == pytest.approx(simulated["mean_kl"], rel=0.1)
    assert 1 < packed["stored_bytes"] / packed["payload_bytes"] < 1.2  # the rest is the header of a tiny file
    simulated, left_out = quality.filter(scheme="q3-packed").to_dicts()
    assert (simulated["execution"], simulated["status"]) == ("simulated", "ok")
    assert (left_out["execution"], left_out["status"], left_out["passage"]) == ("packed", "skipped", "")
    assert "there is no packed kernel for 3 bits" in left_out["reason"]
    assert [left_out[name] for name in ("kl", "top1_token", "mean_kl", "stored_bytes")] == [None] * 4
    assert left_out["payload_bytes"] == simulated["payload_bytes"]


def test_a_packed_file_that_says_something_else_stops_the_stage(made, chosen, monkeypatch):
    original = quantization_quality.write_packed

    def faulty(checkpoint, scheme, tensors, path):
        original(checkpoint, replace(scheme, scale="search"), tensors, path)

    monkeypatch.setattr(quantization_quality, "write_packed", faulty)
    with pytest.raises(QuantizationError, match=r"packed and simulated q4-packed \(all\) differ by"):
        quantization_quality.measure(made(), chosen("quantization_quality"))


def test_a_passage_is_read_in_windows_like_each_window_alone(made, chosen):
    loaded, settings = made(), chosen("quantization_quality")
    passage = passages.open_passage(loaded, "short", settings["passages"]["short"], 50)
    ids = loaded.tokenizer.encode(TEXT.strip())
    windows = [torch.tensor([ids[start : start + 50]]) for start in range(0, len(ids), 50)]
    with torch.inference_mode():
        together = torch.cat(list(passages.logits(loaded.model, passage)))
        reading = passages.read(loaded.model, passage, passages.expected(loaded.model, passage))
        alone = torch.cat([forward(loaded.model, window)[0, :-1] for window in windows if window.shape[1] > 1])
    assert (together - alone).abs().max() < 1e-4
    targets = torch.cat([window[0, 1:] for window in windows])
    expected = -log_probabilities(alone).gather(1, targets[:, None])[:, 0]
    assert reading.nll.tolist() == pytest.approx(expected.tolist(), abs=1e-4)
    assert reading.kl.max() == 0 and reading.agrees.all()
    assert len(reading.nll) == len(ids) - len(windows)


def test_kl_at_every_position_is_the_definition(made, chosen):
    loaded, settings = made(), chosen("quantization_quality")
    passage = passages.open_passage(loaded, "short", settings["passages"]["short"], 50)
    half = load_model(loaded.checkpoint, torch.bfloat16)
    with torch.inference_mode():
        reading = passages.read(half, passage, passages.expected(loaded.model, passage))
        p, q = (torch.cat([log_probabilities(x) for x in passages.logits(m, passage)]) for m in (loaded.model, half))
    assert reading.kl.tolist() == pytest.approx((p.exp() * (p - q)).sum(-1).tolist(), abs=1e-6)
    assert reading.agrees.tolist() == (p.argmax(-1) == q.argmax(-1)).double().tolist()
    assert 0 < reading.kl.mean() < 0.01


def test_a_bos_token_stands_before_every_window(made, chosen):
    with_bos = replace(made(), tokenizer=Tokenizer(tiny_tokenizer.train(bos=True), "tokenizer", "tiny"))
    passage = passages.open_passage(with_bos, "short", chosen("quantization_quality")["passages"]["short"], 50)
    assert (passage.ids[:, 0] == with_bos.tokenizer.prefix[0]).all() and len(passage.ids) > 1
    assert int(passage.predicted.sum()) == len(with_bos.tokenizer.encode(TEXT.strip())) - 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "passage p cannot be read from"),
        ("", "passage p at .* has no token to predict"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_passages_that_cannot_be_read_are_named(made, tmp_path, content, sentence):
    path = tmp_path / "p.txt"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    kind = PromptError if content == "" else ConfigError  # what one tokenizer makes of a text, or a file for no model
    with pytest.raises(kind, match=sentence):
        passages.open_passage(made(), "p", str(path), 50)


def test_errors_count_the_groups_that_hold_an_outlier(made, chosen):
    loaded = made()
    frame = quantization_error.measure(loaded.checkpoint, chosen("quantization_error"))
    spec = loaded.model.spec
    assert frame.filter(scheme="q4").height == len(quantizable(spec)) - spec.tied  # a tied table once
    assert frame.filter(scheme="q4-table-in")["tensor"].to_list() == (["tokens"] if spec.tied else [])
    row, table = frame.filter(scheme="q4", tensor="tokens").row(0, named=True), loaded.model.tokens
    std = table.double().std(correction=0).item()
    far = table.abs() > 4 * std
    assert row["groups"] == len(table)  # rows of 64 are groups of 64
    assert row["groups_with_outlier"] == int(far.any(dim=1).sum())
    assert row["beyond_4_sigma"] == pytest.approx(far.double().mean().item())
    assert row["max_sigma"] == pytest.approx(table.abs().max().item() / std, rel=1e-4)
    assert (frame["relative_error"] > 0).all() and (frame["relative_error"] < 0.2).all()
    codes = [int(code) for code in row["first_codes"].split(", ")]
    read = [code * row["first_scale"] for code in codes]
    assert table[0, :6].tolist() == pytest.approx(read, abs=row["first_scale"] * 0.51)


def test_a_timing_beyond_the_positions_is_refused(made, chosen):
    loaded = made()
    settings = chosen("quantization_timing") | {"prefill": 300}
    if loaded.model.spec.learned_positions is None:
        assert quantization_timing.measure(loaded.checkpoint, settings | {"rounds": 1}).height == 3
        return
    kept, refused = divided(quantization_timing.measure(loaded.checkpoint, settings))
    assert kept.is_empty() and refused.height
    for reason in refused["not_measured"]:
        assert "stages.quantization.times asks for 300 tokens, but tiny has 256 positions" in reason


def test_rounds_time_every_case_as_often_in_an_order_that_a_seed_fixes():
    seen: list[str] = []
    cases = {name: lambda name=name: lambda: seen.append(name) for name in "abcd"}
    times = rounds.shuffled(cases, 5, seed=1)
    assert {name: len(found) for name, found in times.items()} == dict.fromkeys("abcd", 5)
    turns = ["".join(seen[start : start + 4]) for start in range(0, 24, 4)]
    assert turns[0] == "abcd" and all(sorted(turn) == list("abcd") for turn in turns) and len(set(turns)) > 2
    assert all(math.isfinite(t) and t >= 0 for found in times.values() for t in found)


@pytest.fixture
def huge(made, tmp_path):
    """The model with one weight of one FFN matrix beyond what float16 scales hold; called as `made`."""
    kept = made()
    (file,) = kept.checkpoint.tensor_files
    stored = load_file(file)
    up = ("mlp.c_fc.weight", "up_proj.weight", "input_linear.weight")
    name = next(name for name in sorted(stored) if name.endswith(up))
    stored[name][0, 0] = 1e7
    save_file(stored, tmp_path / "model.safetensors", metadata={"format": "pt"})
    checkpoint = replace(kept.checkpoint, tensor_files=(tmp_path / "model.safetensors",))
    return lambda: replace(kept, model=load_model(checkpoint), checkpoint=checkpoint)


def test_a_scheme_whose_scales_cannot_hold_the_weights_leaves_the_other_rows(huge, chosen, tmp_path):
    schemes = {
        "q4": {"bits": 4, "group_size": 64},
        "q4-bfloat16": {"bits": 4, "group_size": 64, "scales": "bfloat16"},
        "q4-each": {"bits": 4, "group_size": 64, "one_at_a_time": True},
    }
    every = {name: QuantizationScheme(**scheme).model_dump() for name, scheme in schemes.items()}
    frame = quantization_quality.measure(huge(), chosen("quantization_quality") | {"schemes": every})
    lost = frame.filter(status="skipped")
    assert lost.select("scheme", "families").rows() == [("q4", "all"), ("q4-each", "ffn.up")]
    for reason in lost["reason"]:
        assert "float16 cannot hold a scale of layers.0.ffn.up.weight, whose largest weight is 1e+07" in reason
    assert lost.select("kl", "mean_kl", "perplexity", "target_rank").null_count().row(0) == (2, 2, 2, 2)
    kept = frame.filter(execution="simulated", status="ok")
    spec = huge().model.spec
    assert kept["scheme"].to_list() == ["q4-bfloat16", *["q4-each"] * (len(parts(spec)) - 1)]
    tables.write("quantization_quality", frame, tmp_path / "table")
    # What an error leaves behind is restored: each row is what it is alone.
    alone = {"q4-each": every["q4-each"] | {"one_at_a_time": False, "weights": ["ffn.down"]}}
    (row,) = quantization_quality.measure(huge(), chosen("quantization_quality") | {"schemes": alone}).filter(
        scheme="q4-each"
    )["mean_kl"]
    assert kept.filter(families="ffn.down")["mean_kl"].item() == row
    none = tables.frame("quantization_error", [])
    assert str(quantization_section.impossible(frame, none)).startswith("Asked and not measured: <b>q4</b> (float16")


def test_the_error_of_a_matrix_without_codes_leaves_the_other_rows(huge, chosen, tmp_path):
    frame = quantization_error.measure(huge().checkpoint, chosen("quantization_error"))
    lost = frame.filter(status="skipped")
    assert lost.select("scheme", "tensor", "mean_abs_error", "first_codes").rows() == [
        ("q4", "layers.0.ffn.up.weight", None, "")
    ]
    assert "float16 cannot hold a scale of layers.0.ffn.up.weight" in lost["reason"].item()
    assert lost["max_abs"].item() == pytest.approx(1e7) and lost["groups"].item() > 0
    assert frame.filter(status="ok")["mean_abs_error"].null_count() == 0
    tables.write("quantization_error", frame, tmp_path / "table")


def test_a_model_that_overflows_once_it_is_rounded_has_a_row_with_layer_and_site(made, chosen, monkeypatch):
    """Its scales fit, and yet its pass does not: said of its row alone."""

    def spoiled(self, scheme, tensors, apply=quantization_quality.Simulation.apply):
        model = apply(self, scheme, tensors)
        if scheme.bits == 8:
            model.layers[1]["ffn"].cell.down.weight.fill_(3e38)
        return model

    monkeypatch.setattr(quantization_quality.Simulation, "apply", spoiled)
    frame = quantization_quality.measure(made(), chosen("quantization_quality"))
    (row,) = frame.filter(status="skipped", execution="simulated").rows(named=True)
    assert row["scheme"] == "q8" and "first at layer 1, site ffn_out on france" in row["reason"]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_passage_of_another_editor_is_the_same_text(made, tmp_path, mark, ends):
    plain, other = tmp_path / "plain.txt", tmp_path / "other.txt"
    plain.write_text("The capital of France\nis Paris.\n")
    other.write_text(f"{mark}The capital of France{ends}is Paris.{ends}", encoding="utf-8", newline="")
    expected, found = (passages.open_passage(made(), "p", str(path), 50) for path in (plain, other))
    assert torch.equal(expected.ids, found.ids)
