"""A family whose layer is unlike any other's is measured rightly by every stage, against its plain reference.

Nothing but the family's own file knows of it: attention and FFN side by side, four norms, partial rotation.
"""

from __future__ import annotations

import math

import polars as pl
import pytest
import tiny_tokenizer
import torch
from parallel_family import ATTENTION_SCALE, CONFIG, FAMILY, MLP_SCALE
from random_models import build
from tokentrail import tables
from tokentrail.errors import ParityError, UnsupportedError
from tokentrail.forward import families
from tokentrail.forward import spec as specs
from tokentrail.forward.cache import formula_bytes, held_bytes, new_cache
from tokentrail.forward.describe import describe
from tokentrail.forward.frame import forward
from tokentrail.forward.registry import runs
from tokentrail.forward.taps import SITES
from tokentrail.measure.reference import reference_sites
from tokentrail.measure.work import layer_operations
from tokentrail.stages.ablations import measure as ablations
from tokentrail.stages.arithmetic import measure as arithmetic
from tokentrail.stages.attribution import measure as attribution
from tokentrail.stages.block import measure as block
from tokentrail.stages.lens import measure as lens
from tokentrail.stages.parity import parity, parity_layers
from tokentrail.stages.parity.parity_gate import gate
from tokentrail.stages.positions import measure as positions
from tokentrail.stages.residual import measure as residual
from tokentrail.weights.load import Loaded
from tokentrail.weights.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(families.FAMILIES, "parallel", FAMILY)
        vocabulary = tiny_tokenizer.train().get_vocab_size()
        yield build(CONFIG | {"vocab_size": vocabulary}, tmp_path_factory.mktemp("parallel"))


@pytest.fixture(scope="module")
def loaded(pair) -> Loaded:
    tokenizer = Tokenizer(tiny_tokenizer.train(), "tokenizer", "tiny")
    return Loaded(pair.ours(), tokenizer, pair.checkpoint, torch.device("cpu"))


@pytest.fixture
def ids(loaded, settings):
    return torch.tensor([loaded.tokenizer.encode(settings["prompts"]["alice"]["text"])])


@torch.no_grad()
def seen_by_modules(reference, ids) -> dict[str, torch.Tensor]:
    """The output of every module of the reference, by its name."""
    seen, hooks = {}, []
    for name, module in reference.named_modules():
        if name:
            hooks.append(module.register_forward_hook(lambda _, given, out, name=name: seen.update({name: out})))
    reference(ids)
    for hook in hooks:
        hook.remove()
    return seen


def of_alice(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("prompt") == "alice")


def test_it_passes_the_gate_and_every_norm_is_compared(loaded, settings):
    layers = parity_layers.measure(loaded, settings)
    assert "largest logit difference" in gate(parity.measure(loaded, settings), layers, "parallel")
    for layer in range(CONFIG["num_hidden_layers"]):
        sites = set(layers.filter(pl.col("layer") == layer)["site"])
        assert sites == {"resid_pre", "mixer_in", "mixer_out", "ffn_in", "ffn_out", "resid_post"}
    assert layers["max_abs_diff"].max() < 1e-4


def test_a_module_that_is_not_there_is_named(pair, loaded, ids, monkeypatch):
    wrong = FAMILY.modules._replace(sites=lambda layer: {"mixer_in": "ln_1"})
    monkeypatch.setitem(families.FAMILIES, "parallel", FAMILY._replace(modules=wrong))
    with pytest.raises(ParityError, match=r"ParallelForCausalLM has no module layers\.0\.ln_1"):
        reference_sites(pair.reference, loaded.model.spec, ids, lambda *_: None)


def test_block_shows_what_the_layer_makes(pair, loaded, settings, ids):
    """Every tensor that the reference has too, and the FFN reads the stream that entered."""
    frame = of_alice(block.measure(loaded, settings))
    theirs = seen_by_modules(pair.reference, ids)
    at = {
        "token_rows": "tokens",
        "mixer_in": "layers.0.attention_norm",
        "mixer_out": "layers.0.attention_norm_after",
        "ffn_in": "layers.0.mlp_norm",
        "ffn_up": "layers.0.mlp.up",
        "ffn_out": "layers.0.mlp_norm_after",
        "resid_post": "layers.0",
    }
    steps = {row["site"]: row for row in frame.to_dicts()}
    assert len(steps) == frame.height and "resid_mid" not in steps
    for site, name in at.items():
        expected = theirs[name][0, -1].double()
        assert steps[site]["l2_norm"] == pytest.approx(expected.norm().item(), rel=1e-4), site
        assert steps[site]["mean"] == pytest.approx(expected.mean().item(), abs=1e-5), site
    order = [site for site in SITES if site in steps]
    assert frame.sort("order")["site"].to_list() == order


def test_positions_turn_the_rotated_channels_alone(pair, loaded, settings):
    asked = settings | {"seed": 0, "pairs": [[7, 3]]}
    frame = positions.measure(pair.checkpoint, loaded.tokenizer, asked)
    half, pairs = CONFIG["rotary_channels"] // 2, CONFIG["hidden_size"] // CONFIG["num_attention_heads"] // 2
    for row in frame.filter(pl.col("probe") == "expected_rotation").to_dicts():
        turned = [math.cos(row["offset"] * CONFIG["rope_theta"] ** (-i / half)) for i in range(half)]
        assert row["score"] == pytest.approx((sum(turned) + pairs - half) / pairs, abs=1e-9)


def test_contributions_add_up_to_the_logits(pair, loaded, settings, ids):
    frame = of_alice(attribution.measure(loaded, settings))
    logits = pair.reference(ids).logits[0, -1].double()
    target = loaded.tokenizer.encode(" Alice")[-1]
    assert frame["target_logit_contribution"].sum() == pytest.approx(logits[target].item(), abs=1e-4)
    heads = frame.filter(pl.col("site") == "z")
    assert heads.height == CONFIG["num_hidden_layers"] * CONFIG["num_attention_heads"]
    # The FFN of layer 1, from the reference: its update through the last norm, held at its scale.
    theirs = seen_by_modules(pair.reference, ids)
    last, norm = theirs["layers.2"][0, -1].double(), pair.reference.final_norm
    update = MLP_SCALE * theirs["layers.1.mlp_norm_after"][0, -1].double()
    through = (update - update.mean()) / (last.var(correction=0) + norm.eps).sqrt() * norm.weight.double()
    expected = (pair.reference.head.weight[target].double() @ through).item()
    own = frame.filter((pl.col("site") == "ffn_out") & (pl.col("layer") == 1))
    assert own["target_logit_contribution"].item() == pytest.approx(expected, abs=1e-5)


def test_residual_shows_updates_at_their_own_scales(pair, loaded, settings, ids):
    frame = of_alice(residual.measure(loaded, settings))
    theirs = seen_by_modules(pair.reference, ids)
    assert "resid_mid" not in set(frame["site"])
    for site, name, scale in (
        ("mixer_out", "attention_norm_after", ATTENTION_SCALE),
        ("ffn_out", "mlp_norm_after", MLP_SCALE),
        ("ffn_in", "mlp_norm", 1.0),
    ):
        rows = frame.filter((pl.col("site") == site) & (pl.col("layer") == 1)).sort("position")
        expected = (scale * theirs[f"layers.1.{name}"][0]).norm(dim=-1).tolist()
        assert rows["l2_norm"].to_list() == pytest.approx(expected, rel=1e-4), site


@torch.no_grad()
def test_the_lens_reads_the_stream_after_whole_layers(pair, loaded, settings, ids):
    frame = of_alice(lens.measure(loaded, settings))
    theirs, target = seen_by_modules(pair.reference, ids), loaded.tokenizer.encode(" Alice")[-1]
    assert set(frame["site"]) == {"embed", "resid_post"}
    for layer in range(CONFIG["num_hidden_layers"]):
        logits = pair.reference.head(pair.reference.final_norm(theirs[f"layers.{layer}"][0, -1]))
        own = frame.filter((pl.col("site") == "resid_post") & (pl.col("layer") == layer))
        assert own["target_probability"].item() == pytest.approx(logits.softmax(-1)[target].item(), rel=1e-4)


@pytest.mark.parametrize(
    ("component", "module"), [("ffn", "mlp_norm_after"), ("mixer", "attention.out"), ("head", "attention.out")]
)
def test_ablations_take_out_one_part(pair, loaded, settings, ids, component, module):
    """Against the reference with the module's output (FFN) or its input (`z`: all heads, or the first) set to zero."""
    own = {"operations": ["zero"], "references": [], "resample_from": {}, "texts": {}, "memory_mb": 512}
    frame = of_alice(ablations.measure(loaded, settings | own))
    head_dim = CONFIG["hidden_size"] // CONFIG["num_attention_heads"]

    def emptied(_, given):
        z = given[0].clone()
        z[..., : head_dim if component == "head" else None] = 0
        return (z,)

    of_module = pair.reference.get_submodule(f"layers.1.{module}")
    hook = (
        of_module.register_forward_hook(lambda _, given, out: torch.zeros_like(out))
        if component == "ffn"
        else of_module.register_forward_pre_hook(emptied)
    )
    with hook, torch.inference_mode():
        log_p = pair.reference(ids).logits[0, -1].double().log_softmax(-1)
    rows = frame.filter((pl.col("component") == component) & (pl.col("layers") == "1"))
    row = rows.filter(pl.col("heads") == "0") if component == "head" else rows
    target = loaded.tokenizer.encode(" Alice")[-1]
    assert row["target_probability"].item() == pytest.approx(log_p[target].exp().item(), rel=1e-3)


def test_one_count_of_operations_and_of_bytes(pair, loaded, ids):
    spec, tokens = loaded.model.spec, ids.shape[1]
    cache = new_cache(spec, 1, tokens)
    forward(loaded.model, ids, cache)
    assert held_bytes(cache, 0) == formula_bytes(spec, tokens)
    asked = {"model": "tiny", "rows": [1], "tokens": [1], "caches": {}, "payloads": {}}
    flops = arithmetic.measure(pair.checkpoint, asked).filter(pl.col("quantity") == "flops")
    of_layers = flops.filter(~pl.col("part").is_in(["all", "logits"]))["value"].sum()
    assert of_layers == sum(layer_operations(spec, 0, 1))  # of one token no pair is masked


def test_the_cell_table_says_what_is_unlike(loaded):
    said = {(row["part"], row["cell"]): row["detail"] for row in describe(loaded.model.spec)}
    assert said["residual", "side by side"] == "mixer and ffn read the same stream"
    assert said["residual", "update scale"] == "0.8, 0.6"
    assert "on 4 channels" in said["mixer", "attention"]
    after = [row["detail"] for row in describe(loaded.model.spec) if row["cell"] == "rmsnorm"]
    assert after == ["after the mixer, eps 0.001", "after the ffn, eps 0.001"]


@pytest.mark.parametrize("ask", [specs.kind_of, runs])
def test_an_unknown_kind_is_no_mamba2(ask):
    with pytest.raises(UnsupportedError, match="Norm"):
        ask(specs.Norm("rmsnorm", 1e-5))


def test_tables_hold_it(loaded, settings, tmp_path):
    for name, measured in (("block", block), ("residual", residual), ("lens", lens), ("attribution", attribution)):
        tables.write(name, measured.measure(loaded, settings), tmp_path / f"{name}.parquet")
