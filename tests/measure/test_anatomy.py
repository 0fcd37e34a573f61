"""What a model is made of: the vectors of its tables, its positions, a layer step by step, and sizes by arithmetic."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import polars as pl
import pytest
import tokenizer_zoo
import torch
from random_models import FULL_SHAPES, VARIANTS, build
from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import forward
from tokentrail.forward.shapes import shapes
from tokentrail.forward.taps import SITES, Record
from tokentrail.measure.reference import reference_sites
from tokentrail.stages.arithmetic import measure as arithmetic
from tokentrail.stages.block import measure as block
from tokentrail.stages.geometry import measure as geometry
from tokentrail.stages.mlp import measure as mlp
from tokentrail.stages.positions import measure as positions
from tokentrail.weights import rows as rows_of
from tokentrail.weights.load import load_model
from tokentrail.weights.tokenizer import Tokenizer

GEOMETRY = {
    "words": [" Alice", " book", " Mirabelle"],
    "pairs": [[" Alice", " book"]],
    "analogies": {"one": {"plus": [" book", " Alice"], "minus": [" Bob"]}},
    "neighbours": 4,
    "random": 50,
    "seed": 3,
}
POSITIONS = {"pairs": [[17, 5], [112, 100], [17, 16], [9, 9]], "seed": 0}
SIZES = {"rows": [1, 3], "tokens": [5, 40], "caches": {}, "payloads": {}}


def checked(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    return tables.schema_of(table).validate(frame, cast=True)


# the token table


@pytest.fixture
def measured(loaded, settings):
    return checked("geometry", geometry.measure(loaded.checkpoint, loaded.tokenizer, settings | GEOMETRY))


def token_table(loaded) -> torch.Tensor:
    return loaded.model.tokens.double()


def test_neighbours_are_those_of_the_whole_table(loaded, measured):
    table, own = token_table(loaded), loaded.tokenizer.following("", " book")[0]
    cosines = torch.cosine_similarity(table, table[own][None], dim=1)
    cosines[[own, *range(loaded.tokenizer.vocabulary, len(table))]] = -2.0  # itself, and rows without a token
    expected = cosines.sort(descending=True)
    rows = measured.filter(probe="neighbours", token=" book")
    assert rows["cosine"].to_list() == pytest.approx(expected.values[:4].tolist())
    assert rows["neighbour"].to_list() == [loaded.tokenizer.token(int(i)) for i in expected.indices[:4]]


def test_a_word_of_several_pieces_has_no_row_and_says_so(measured):
    row = measured.filter(token=" Mirabelle").row(0, named=True)
    assert measured.filter(token=" Mirabelle").height == 1
    assert row["pieces"] > 1 and row["cosine"] is None


@pytest.mark.parametrize("old", [True, False])
def test_a_word_with_a_space_and_one_without_are_two_words_under_metaspace(old, settings, tmp_path):
    tokenizer = Tokenizer(tokenizer_zoo.sentencepiece(old), "tokenizer", "tiny")
    checkpoint = build(VARIANTS["llama"] | {"vocab_size": tokenizer.vocabulary}, tmp_path).checkpoint
    asked = {"words": ["France", " France"], "pairs": [["France", " France"], [" France", " Alice"]], "analogies": {}}
    rows = checked("geometry", geometry.measure(checkpoint, tokenizer, settings | GEOMETRY | asked))
    pieces = rows.filter(probe="neighbours").unique(["token", "pieces"])
    assert dict(pieces.select("token", "pieces").rows()) == {"France": len(tokenizer.word("France")), " France": 1}
    assert len(tokenizer.word("France")) > 1, "this vocabulary has the word with its space alone"
    bare, spaced = rows.filter(probe="pair").rows(named=True)
    assert bare["pieces"] > 1 and bare["cosine"] is None
    assert spaced["pieces"] == 1 and abs(spaced["cosine"]) < 1


def test_an_analogy_leaves_its_words_out_or_keeps_them(loaded, measured):
    table = token_table(loaded)
    book, alice, bob = (loaded.tokenizer.following("", word)[0] for word in (" book", " Alice", " Bob"))
    vector = table[book] + table[alice] - table[bob]
    kept = measured.filter(probe="analogy_all").row(0, named=True)
    assert kept["token"] == " book + Alice − Bob"
    best = torch.cosine_similarity(table[: loaded.tokenizer.vocabulary], vector[None], dim=1).max()
    assert kept["cosine"] == pytest.approx(best.item())
    assert kept["neighbour"] in (" book", " Alice")
    assert not {" book", " Alice", " Bob"} & set(measured.filter(probe="analogy")["neighbour"])


def test_the_random_baseline_is_the_mean_over_a_seeded_sample(loaded, settings, measured):
    row = measured.filter(probe="random", token=" Alice").row(0, named=True)
    assert abs(row["cosine"]) < 0.2 and row["deviation"] == pytest.approx(48**-0.5, rel=0.5)
    again = geometry.measure(loaded.checkpoint, loaded.tokenizer, settings | GEOMETRY)
    assert again.equals(geometry.measure(loaded.checkpoint, loaded.tokenizer, settings | GEOMETRY))
    other = geometry.measure(loaded.checkpoint, loaded.tokenizer, settings | GEOMETRY | {"seed": 4})
    assert other.filter(probe="random", token=" Alice")["cosine"][0] != row["cosine"]


def test_lengths_of_rows(loaded, measured):
    lengths = token_table(loaded)[: loaded.tokenizer.vocabulary].norm(dim=1)
    by_order = measured.filter(pl.col("probe") == "token_norm", pl.col("token") != "")
    assert by_order["value"].to_list() == sorted(by_order["value"])
    assert by_order["value"][-1] == pytest.approx(lengths.max().item())
    mean = measured.filter(probe="position_norm")
    assert mean.height == (loaded.model.positions is not None)
    if mean.height:
        assert mean["value"][0] == pytest.approx(loaded.model.positions.double().norm(dim=1).mean().item())


def test_the_table_is_never_read_as_a_whole(loaded, settings, monkeypatch):
    """In blocks of any size, the numbers are the same; and no block is larger than it may be."""
    whole = geometry.measure(loaded.checkpoint, loaded.tokenizer, settings | GEOMETRY)
    monkeypatch.setattr(rows_of, "BLOCK", 7)
    table = rows_of.StoredTable(loaded.checkpoint, "tokens")
    assert max(block.shape[0] for block in table.blocks()) == 7
    assert sum(block.shape[0] for block in table.blocks()) == table.rows
    in_blocks = geometry.measure(loaded.checkpoint, loaded.tokenizer, settings | GEOMETRY)
    assert in_blocks.drop("cosine", "deviation", "value").equals(whole.drop("cosine", "deviation", "value"))
    assert (in_blocks["cosine"] - whole["cosine"]).abs().max() < 1e-12


# positions


def positions_of(loaded, settings):
    return checked("positions", positions.measure(loaded.checkpoint, loaded.tokenizer, settings | POSITIONS))


def test_each_kind_of_position_has_its_own_rows(loaded, settings):
    frame, spec = positions_of(loaded, settings), loaded.model.spec
    if spec.learned_positions is not None:
        assert set(frame["probe"]) == {"position_norm", "position_cosine", "token_norm"}
    elif spec.family == "granitemoehybrid":
        assert frame.is_empty()
    else:
        assert set(frame["probe"]) == {"unrotated", "rotation", "expected_rotation"}


def test_learned_positions_are_measured_row_by_row(pair, settings, loaded):
    if loaded.model.positions is None:
        pytest.skip("this model has no position table")
    frame, table = positions_of(loaded, settings), loaded.model.positions.double()
    assert frame.filter(probe="position_norm")["score"].to_list() == pytest.approx(table.norm(dim=1).tolist())
    assert frame.filter(probe="position_cosine", offset=0)["score"][0] == pytest.approx(1)
    one_apart = torch.cosine_similarity(table[:-1], table[1:], dim=1).mean().item()
    assert frame.filter(probe="position_cosine", offset=1)["score"][0] == pytest.approx(one_apart)
    ids = loaded.tokenizer.encode(settings["prompts"]["france"]["text"])
    added = frame.filter(probe="token_norm", prompt="france")["score"].to_list()
    assert added == pytest.approx(loaded.model.tokens[ids].double().norm(dim=1).tolist(), rel=1e-6)


@pytest.mark.parametrize(
    "rope", [specs.Rope(1e4), specs.Rope(1e6), specs.Rope(5e4, specs.Llama3Scaling(8.0, 1.0, 4.0, 64))]
)
def test_rotated_scores_depend_on_the_distance_alone(rope):
    rows = list(positions.rotations(rope, 64, 64, 1000, POSITIONS))
    scores = {(row["query_position"], row["key_position"]): row["score"] for row in rows if row["probe"] == "rotation"}
    assert scores[17, 5] == pytest.approx(scores[112, 100], abs=1e-4)
    assert scores[17, 5] != pytest.approx(scores[17, 16], abs=1e-2)
    assert scores[9, 9] == pytest.approx(rows[0]["score"], abs=1e-5), "no distance, no rotation"


def test_the_expected_rotation_is_the_mean_over_random_vectors():
    rope = specs.Rope(1e4)
    vectors = torch.randn(4000, 1, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    vectors /= vectors.norm(dim=-1, keepdim=True)
    scores = [positions.rotated_score(u[None], u[None], 7, 3, rope, 32) for u in vectors]
    (expected,) = (
        row["score"]
        for row in positions.rotations(rope, 32, 32, 100, POSITIONS)
        if row["probe"] == "expected_rotation" and row["offset"] == 4
    )
    assert sum(scores) / len(scores) == pytest.approx(expected, abs=0.01)


def test_distances_are_few_and_reach_the_end():
    found = positions.doubling(1000)
    assert found[:4] == [0, 1, 2, 3] and found == sorted(set(found))
    assert len(found) < 40 and 1000 / 2 < found[-1] < 1000


# one layer, step by step


@pytest.mark.parametrize("name", VARIANTS)
def test_the_steps_are_what_the_reference_makes(pair, name):
    """Every site that transformers' modules show, in numbers; and every site that the layer's cells name, in order."""
    model, ids = pair(name).ours(), pair(name).ids[:1, :40]
    loaded = SimpleNamespace(model=model)
    theirs = {}
    with torch.inference_mode():
        reference_sites(pair(name).reference, model.spec, ids, lambda site, i, x: theirs.update({(site, i): x}))
        steps = list(block.steps(loaded, ids))
    for kind, layer in block.first_of_each_kind(model.spec).items():
        rows = [(order, step) for mixer, at, order, step in steps if (mixer, at) == (kind, layer)]
        assert [order for order, _ in rows] == list(range(len(rows)))
        told = {step["site"]: step for _, step in rows}
        of_layer = [site for site in told if site not in block.EMBEDDING]
        assert of_layer == [site for site in model.spec.layers[layer].sites if "tokens" in SITES[site]]
        assert {"qkv", "q", "k", "v", "scores"} <= set(told) or {"conv_out", "dt", "ssm_y", "gated"} <= set(told)
        for site in ("resid_pre", "mixer_in", "mixer_out", "ffn_in", "ffn_out", "resid_post"):
            expected = theirs[site, layer][0, -1].double()
            assert told[site]["l2_norm"] == pytest.approx(expected.norm().item(), rel=1e-4), site
            assert told[site]["mean"] == pytest.approx(expected.mean().item(), abs=1e-4), site
            assert told[site]["shape"] == "x".join(map(str, theirs[site, layer].shape)), site


def test_the_first_layer_of_each_kind_is_shown(loaded, settings):
    frame = checked("block", block.measure(loaded, settings))
    first = block.first_of_each_kind(loaded.model.spec)
    assert dict(frame.select("mixer", "layer").unique().iter_rows()) == first
    tokens = len(loaded.tokenizer.encode(settings["prompts"]["alice"]["text"]))
    width = loaded.model.spec.width
    alice = frame.filter(prompt="alice", layer=0)
    assert set(alice.filter(pl.col("site").is_in(["resid_pre", "mixer_in", "resid_post"]))["shape"]) == {
        f"1x{tokens}x{width}"
    }
    normed = alice.filter(site="mixer_in").row(0, named=True)
    assert normed["rms"] ** 2 == pytest.approx(normed["mean"] ** 2 + normed["deviation"] ** 2)
    assert normed["l2_norm"] == pytest.approx(normed["rms"] * math.sqrt(width))
    assert alice["step"][0] == ("token rows" if 0 in first.values() else "stream entering")


# inside the FFN


def test_the_ffn_is_counted_channel_by_channel(loaded, settings):
    frame = checked("mlp", mlp.measure(loaded, settings))
    record = Record("ffn_act")
    ids = torch.tensor([loaded.tokenizer.encode(settings["prompts"]["alice"]["text"])])
    with torch.inference_mode():
        forward(loaded.model, ids, tap=record)
    x = record.seen["ffn_act", 1][0, 3]
    row = frame.filter(prompt="alice", layer=1, position=3).row(0, named=True)
    assert row["near_zero_fraction"] == pytest.approx(sum(abs(v) < 0.01 for v in x.tolist()) / len(x))
    assert row["negative_fraction"] == pytest.approx(sum(v < 0 for v in x.tolist()) / len(x))
    assert (row["max"], row["min"]) == (max(x.tolist()), min(x.tolist()))
    assert row["width"] == loaded.model.spec.layers[1].ffn.width
    if loaded.model.spec.layers[1].ffn.kind == "gelu":
        assert frame["min"].min() > -0.171, "GELU's own least value"


# arithmetic


@pytest.mark.parametrize("config", [*VARIANTS.values(), *FULL_SHAPES.values()], ids=[*VARIANTS, *FULL_SHAPES])
def test_parts_add_up_and_formulas_give_their_values(config):
    frame = checked("arithmetic", arithmetic.measure(SimpleNamespace(config=config), {"model": "m"} | SIZES))
    for row in frame.to_dicts():
        assert eval(row["formula"], {"__builtins__": {}}) == row["value"], row
    spec = read_spec(config)
    assert frame.filter(quantity="parameters", part="all")["value"][0] == sum(map(math.prod, shapes(spec).values()))
    for quantity in ("parameters", "flops"):
        rows = frame.filter(quantity=quantity).group_by("rows", "tokens", "part").agg(pl.col("value").sum())
        parts = rows.filter(pl.col("part") != "all").group_by("rows", "tokens").agg(pl.col("value").sum())
        totals = rows.filter(part="all").select("rows", "tokens", "value")
        assert parts.sort("rows", "tokens").equals(totals.sort("rows", "tokens"))


def test_the_cache_is_as_large_as_it_is_said_to_be(loaded):
    """The arithmetic against tensors that were really made."""
    from tokentrail.forward.cache import KeyValues, new_cache

    frame = arithmetic.measure(loaded.checkpoint, {"model": "m"} | SIZES)
    cache = new_cache(loaded.model.spec, 3, 40)
    held = {"keys and values": 0, "convolution windows": 0, "states": 0}
    for state in filter(None, cache.states.values()):
        parts = ("keys and values",) * 2 if isinstance(state, KeyValues) else ("convolution windows", "states")
        for part, tensor in zip(parts, state, strict=True):
            held[part] += tensor.nbytes
    said = frame.filter(quantity="cache", rows=3, tokens=40)
    assert dict(said.select("part", "value").iter_rows()) == {part: size for part, size in held.items() if size}


@pytest.mark.parametrize("name", ["gpt2", "llama-biases", "qwen3", "granite-dense"])
def test_operations_are_those_that_torch_counts(pair, name):
    """torch's own counter on the pass that runs here, with explicit attention weights."""
    from torch.utils.flop_counter import FlopCounterMode

    model, ids = pair(name).ours(), pair(name).ids[:1, :40]
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        forward(model, ids, tap=Record("pattern"), read=torch.tensor([[39]]))
    said = arithmetic.measure(pair(name).checkpoint, {"model": "m"} | SIZES)
    assert said.filter(quantity="flops", part="all", rows=1, tokens=40)["value"][0] == counter.get_total_flops()


def test_hypothetical_models():
    settings = SIZES | {
        "caches": {"big": {"layers": 32, "kv_heads": 32, "head_dim": 128, "bytes_per_number": 2, "tokens": [1, 2048]}},
        "payloads": {"seven": {"parameters": 7_000_000_000, "bits": 4, "group": 64}},
    }
    frame = arithmetic.measure(SimpleNamespace(config=VARIANTS["gpt2"]), {"model": "m"} | settings)
    assert frame.filter(subject="big", tokens=2048)["value"][0] == 2**30
    assert frame.filter(subject="seven", part="codes and scales")["value"][0] == 3_718_750_000


def test_a_payload_rounds_up_to_whole_bytes_and_groups():
    assert arithmetic.payload_bytes(10, 3) == 4
    assert arithmetic.payload_bytes(65, 4, 64) == 33 + 2 * 2
    assert arithmetic.payload_bytes(64, 4, 64) == 34


def test_a_model_in_half_precision_is_shown_too(loaded, settings):
    halves = dataclasses.replace(loaded, model=load_model(loaded.checkpoint, dtype=torch.bfloat16))
    frame = checked("block", block.measure(halves, settings))
    sharp = checked("block", block.measure(loaded, settings))
    assert frame["step"].equals(sharp["step"])
    assert (frame["l2_norm"] - sharp["l2_norm"]).abs().max() < 0.05 * sharp["l2_norm"].max()
