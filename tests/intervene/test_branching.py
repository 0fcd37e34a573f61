"""The branching batch says what each variant says when it runs alone in a plain pass, whatever the variants are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokentrail.errors import ConfigError, InterventionError
from tokentrail.forward import spec as specs
from tokentrail.forward.assemble import assemble
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import forward, last, unembed
from tokentrail.forward.shapes import shapes
from tokentrail.forward.taps import Record
from tokentrail.intervene import branching
from tokentrail.intervene.branching import run, run_alone
from tokentrail.intervene.interventions import Intervention, Operation, Variant
from tokentrail.intervene.plan import HOLES, blocks, bytes_per_row

MODELS = ["gpt2", "llama", "qwen3", "granite-nope", "granite-two-groups"]
PLENTY = 1 << 30
TOKENS = 9


@pytest.fixture(scope="module", params=MODELS)
def model(request, pair):
    return pair(request.param).ours()


@pytest.fixture(scope="module")
def ids(model):
    return torch.randint(0, model.spec.vocabulary, (1, TOKENS), generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module")
def other_run(model):
    """Every editable site of a pass over another prompt of the same length."""
    other = torch.randint(0, model.spec.vocabulary, (1, TOKENS), generator=torch.Generator().manual_seed(6))
    record = Record("resid_pre", "mixer_out", "ffn_out", "z", "ssm_y", keep=lambda x: x[0])
    with torch.inference_mode():
        forward(model, other, tap=record)
    return record.seen


def alone(model, ids, variant):
    with torch.inference_mode():
        return run_alone(model, ids, variant)


@st.composite
def interventions(draw, spec, values):
    layer = draw(st.integers(0, len(spec.layers) - 1))
    mixer = spec.layers[layer].mixer
    sites = ["resid_pre", "mixer_out", "ffn_out", "z", "pattern"]
    site = draw(st.sampled_from([*sites, "ssm_y"] if isinstance(mixer, specs.Mamba2) else sites))
    positions = draw(st.none() | st.lists(st.integers(0, TOKENS - 1), min_size=1, max_size=3, unique=True).map(tuple))
    heads = None
    if site in ("z", "ssm_y", "pattern"):
        heads = draw(
            st.none() | st.lists(st.integers(0, mixer.heads - 1), min_size=1, max_size=3, unique=True).map(tuple)
        )
    if site == "pattern":
        kind = draw(st.sampled_from(["zero", "scale", "drop_value", "mask", "renormalise"]))
        if isinstance(mixer, specs.Mamba2) and kind in ("mask", "renormalise"):
            kind = "zero"  # its rows do not sum to 1
        positions = positions or (0,)
    else:
        kind = draw(st.sampled_from(["zero", "scale", "replace"]))
    factor = draw(st.sampled_from([0.5, 2.0, -1.0]))
    return Intervention(site, (layer,), Operation(kind, factor, values), heads, positions)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_rows_of_a_batch_equal_passes_alone(model, ids, other_run, data):
    one = interventions(model.spec, other_run)
    variants = [
        Variant(f"v{i}", tuple(edits))
        for i, edits in enumerate(data.draw(st.lists(st.lists(one, min_size=1, max_size=3), min_size=1, max_size=6)))
    ]
    branched = run(model, ids, variants, PLENTY)
    assert branched.applied == [variant.planned for variant in variants]
    for variant, logits in zip(variants, branched.logits, strict=True):
        assert (logits - alone(model, ids, variant)).abs().max() < 1e-4


@st.composite
def random_specs(draw):
    """A small model of any shape: any mix of cells, norms, biases and multipliers."""
    kv_heads, per, head_dim = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.sampled_from([2, 4]))
    norm = specs.Norm(draw(st.sampled_from(["layernorm", "rmsnorm"])), 1e-5)
    attention = specs.Attention(
        heads=kv_heads * per,
        kv_heads=kv_heads,
        head_dim=head_dim,
        scale=draw(st.sampled_from([0.3, 1.0])),
        rope=draw(st.sampled_from([None, specs.Rope(100.0)])),
        qk_norm=draw(st.sampled_from([None, specs.Norm("rmsnorm", 1e-5)])),
        qkv_bias=draw(st.booleans()),
        out_bias=draw(st.booleans()),
    )
    groups = draw(st.integers(1, 2))
    mamba2 = specs.Mamba2(
        groups * per, head_dim, groups, 3, 3, draw(st.booleans()), draw(st.booleans()), 0.0, 9.0, 1e-5
    )
    ffn = specs.Ffn(
        *draw(st.sampled_from([("gelu_tanh", False), ("silu", True)])), draw(st.integers(3, 9)), draw(st.booleans())
    )
    layers = draw(st.lists(st.sampled_from([attention, mamba2]), min_size=1, max_size=4))
    learned = draw(st.sampled_from([None, TOKENS + 3]))
    scales = [draw(st.sampled_from([1.0, 0.5, 3.0])) for _ in range(2)]
    width, layers = draw(st.integers(4, 12)), tuple(shaped(draw, mixer, ffn, norm) for mixer in layers)
    return specs.Spec("random", 23, width, layers, norm, learned, 99, *scales, draw(st.booleans()))


def shaped(draw, mixer, ffn, norm):
    """A layer of the two cells, one after the other or side by side, with norms after them or without."""
    subs = [
        specs.SubLayer(name, cell, norm, draw(st.sampled_from([None, norm])), draw(st.sampled_from([1.0, 0.5, 3.0])))
        for name, cell in (("mixer", mixer), ("ffn", ffn))
    ]
    return specs.Layer((tuple(subs),) if draw(st.booleans()) else tuple((sub,) for sub in subs))


def random_model(spec, seed):
    generator = torch.Generator().manual_seed(seed)
    needed = shapes(spec)
    return assemble(spec, lambda name: torch.randn(needed[name], generator=generator) * 0.5 if name in needed else None)


@settings(max_examples=40, deadline=None)
@given(spec=random_specs(), seed=st.integers(0, 99), data=st.data())
def test_rows_equal_passes_alone_for_any_spec(spec, seed, data):
    model = random_model(spec, seed)
    ids, other = torch.randint(0, 23, (2, 1, TOKENS), generator=torch.Generator().manual_seed(seed))
    record = Record("resid_pre", "mixer_out", "ffn_out", "z", "ssm_y", "ssm_state", keep=lambda x: x[0])
    with torch.inference_mode():
        forward(model, other, tap=record)
    one = interventions(spec, record.seen)
    variants = [Variant(f"v{i}", (edit,)) for i, edit in enumerate(data.draw(st.lists(one, min_size=1, max_size=5)))]
    for i, layer in enumerate(spec.layers):
        if isinstance(layer.mixer, specs.Mamba2):
            kind, position = (
                data.draw(st.sampled_from(["zero", "scale", "replace"])),
                data.draw(st.integers(0, TOKENS - 2)),
            )
            edit = Intervention("ssm_state", (i,), Operation(kind, 0.5, record.seen), None, (position,))
            variants.append(Variant(f"state {i}", (edit,)))
    branched = run(model, ids, variants, PLENTY)
    for variant, logits in zip(variants, branched.logits, strict=True):
        expected = alone(model, ids, variant)
        assert (logits - expected).abs().max() <= 1e-4 * max(1.0, expected.abs().max().item())


@pytest.mark.parametrize("variant", ["granite-nope", "granite-two-groups"])
def test_a_state_in_its_own_place_changes_nothing_and_a_zeroed_one_forgets(pair, variant):
    """Zeroing every state after a position is reading the rest as if Mamba2 had seen nothing before."""
    model, ids = pair(variant).ours(), pair(variant).ids[:1, :TOKENS]
    mamba2 = tuple(i for i, layer in enumerate(model.spec.layers) if isinstance(layer.mixer, specs.Mamba2))
    record = Record("ssm_state", keep=lambda x: x[0])
    with torch.inference_mode():
        forward(model, ids[:, :4], tap=record)
    own = Intervention("ssm_state", mamba2, Operation("replace", values=record.seen), positions=(3,))
    gone = Intervention("ssm_state", mamba2, Operation("zero"), positions=(3,))
    branched = run(model, ids, [Variant("own", (own,)), Variant("gone", (gone,))], PLENTY)
    assert (branched.logits[0] - branched.clean).abs().max() < 1e-5
    cache = new_cache(model.spec, 1, TOKENS)
    with torch.inference_mode():
        forward(model, ids[:, :4], cache)
        for i in mamba2:
            state = cache.states[i, "mixer"]
            cache.states[i, "mixer"] = state._replace(ssm=torch.zeros_like(state.ssm))
        expected = forward(model, ids[:, 4:], cache)[0, -1]
    assert (branched.logits[1] - expected).abs().max() < 1e-5
    assert (branched.logits[1] - branched.clean).abs().max() > 1e-4
    assert branched.applied == [len(mamba2), len(mamba2)]


def test_a_run_leaves_the_model_as_it_was(model, ids):
    with torch.inference_mode():
        before = forward(model, ids)
    run(model, ids, every_mixer(model), PLENTY)
    attention = [i for i, layer in enumerate(model.spec.layers) if isinstance(layer.mixer, specs.Attention)]
    masked = [
        Variant(f"mask {i}", (Intervention("pattern", (i,), Operation("mask"), positions=(0,)),)) for i in attention
    ]
    run(model, ids, masked, PLENTY)
    with torch.inference_mode():
        assert torch.equal(forward(model, ids), before)


def zero(site, *layers, **where):
    return Intervention(site, layers, Operation("zero"), **where)


def every_mixer(model):
    return [Variant(f"m{i}", (zero("mixer_out", i),)) for i in range(len(model.spec.layers))]


def test_an_edit_really_edits(model, ids):
    """A tap written here, not the library's, zeroes one mixer: the row must say the same."""
    from tokentrail.forward.taps import Tap

    class ByHand(Tap):
        def __call__(self, site, layer, tensor):
            return torch.zeros_like(tensor) if (site, layer) == ("mixer_out", 1) else tensor

    branched = run(model, ids, every_mixer(model), PLENTY)
    with torch.inference_mode():
        expected = forward(model, ids, tap=ByHand(), read=last(ids))[0, 0]
    assert (branched.logits[1] - expected).abs().max() < 1e-5
    assert (branched.logits[1] - branched.clean).abs().max() > 1e-3


def test_zeroing_everything_leaves_the_embedding(model, ids):
    layers = range(len(model.spec.layers))
    nothing = Variant("nothing", (zero("mixer_out", *layers), zero("ffn_out", *layers)))
    record = Record("embed")
    with torch.inference_mode():
        forward(model, ids, tap=record)
        expected = unembed(model, record.seen["embed", -1][:, -1:])[0, 0]
    assert (run(model, ids, [nothing], PLENTY).logits[0] - expected).abs().max() < 1e-5


@pytest.mark.parametrize("site", ["resid_pre", "mixer_out", "ffn_out", "z"])
def test_putting_a_run_into_itself_changes_nothing(model, ids, site):
    record = Record(site, keep=lambda x: x[0])
    with torch.inference_mode():
        forward(model, ids, tap=record)
    replace = Operation("replace", values=record.seen)
    variants = [
        Variant(f"{layer}.{p}", (Intervention(site, (layer,), replace, positions=(p,)),))
        for layer in range(len(model.spec.layers))
        for p in range(TOKENS)
    ]
    branched = run(model, ids, variants, PLENTY)
    assert (branched.logits - branched.clean).abs().max() < 1e-5


def test_single_heads_under_grouped_queries_are_the_right_ones(pair):
    """Zeroing head h is the same as deleting its columns of the output projection."""
    model = pair("llama").ours()
    ids = torch.arange(TOKENS)[None]
    layer, mixer = 1, model.spec.layers[1].mixer
    weight = model.layers[layer]["mixer"].cell.out.weight
    variants = [Variant(f"h{h}", (zero("z", layer, heads=(h,)),)) for h in range(mixer.heads)]
    rows = run(model, ids, variants, PLENTY).logits
    for h, logits in enumerate(rows):
        kept = weight.clone()
        columns = slice(h * mixer.head_dim, (h + 1) * mixer.head_dim)
        with torch.inference_mode():
            weight[:, columns] = 0
            expected = forward(model, ids, read=last(ids))[0, 0]
            weight.copy_(kept)
        assert (logits - expected).abs().max() < 1e-5


def test_small_memory_makes_blocks_that_say_the_same(model, ids):
    variants = every_mixer(model) + [Variant(f"f{i}", (zero("ffn_out", i),)) for i in range(len(model.spec.layers))]
    row = HOLES * bytes_per_row(model.spec, TOKENS, pattern=False, itemsize=4)
    whole = run(model, ids, variants, PLENTY)
    for rows in (1, 2, 3):
        assert all(len(block) <= rows for block in blocks(variants, model.spec, TOKENS, rows * row))
        assert (run(model, ids, variants, rows * row).logits - whole.logits).abs().max() < 1e-5


def test_no_room_for_one_row_is_refused(model, ids):
    with pytest.raises(ConfigError, match="memory_mb is 0, but one row"):
        run(model, ids, every_mixer(model), 100)


def test_every_variant_stands_in_exactly_one_block(model):
    variants = every_mixer(model) * 3
    flat = [
        i
        for block in blocks(variants, model.spec, TOKENS, 5 * HOLES * bytes_per_row(model.spec, TOKENS, False, 4))
        for i in block
    ]
    assert sorted(flat) == list(range(len(variants)))


@pytest.mark.parametrize("rows", [2, 3, 100])
def test_what_lies_below_an_edit_is_computed_once(model, ids, monkeypatch, rows):
    passed = []

    class Counting(branching.BranchTap):
        def __call__(self, site, layer, tensor):
            if site == "mixer_out":
                passed.append(tensor.shape[0])
            return super().__call__(site, layer, tensor)

    monkeypatch.setattr(branching, "BranchTap", Counting)
    variants, layers = every_mixer(model), len(model.spec.layers)
    found = run(model, ids, variants, rows * HOLES * bytes_per_row(model.spec, TOKENS, False, 4))
    assert sum(passed) == layers + sum(layers - variant.first_layer for variant in variants)
    with torch.inference_mode():
        assert (found.clean - forward(model, ids, read=last(ids))[0, 0]).abs().max() < 1e-5


@pytest.mark.parametrize("count", [0, 1, 32, 33, 10_000])
def test_the_sample_is_spread_over_the_variants(count):
    chosen = branching.sample(count)
    assert len(set(chosen)) == len(chosen) == min(-(-count // branching.ALONE), branching.AT_MOST)
    assert all(0 <= i < count for i in chosen)


def test_an_edit_that_is_not_applied_is_an_error(model, ids, monkeypatch):
    class Forgetful(branching.BranchTap):
        def __call__(self, site, layer, tensor):
            self.edits.pop(("mixer_out", 1), None)
            return super().__call__(site, layer, tensor)

    monkeypatch.setattr(branching, "BranchTap", Forgetful)
    with pytest.raises(InterventionError, match="variant m1 planned 1 edits, but 0 were applied"):
        run(model, ids, every_mixer(model), PLENTY)


def test_a_batch_that_differs_from_passes_alone_is_an_error(model, ids, monkeypatch):
    class Wrong(branching.BranchTap):
        def __call__(self, site, layer, tensor):
            tensor = super().__call__(site, layer, tensor)
            return tensor * 1.5 if site == "ffn_out" else tensor

    monkeypatch.setattr(branching, "BranchTap", Wrong)
    with pytest.raises(InterventionError, match="run alone differs"):
        run(model, ids, every_mixer(model), PLENTY)
