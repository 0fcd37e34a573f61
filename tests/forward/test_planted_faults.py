"""The gate must catch every one of these: single changes in the cells, the frame, the loader and the families.

The faulty pass is put through the parity tables at the default tolerance, and the gate must refuse it and name a layer
and a site.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
import torch
import torch.nn.functional as F
from families import CASES, VARIANTS
from planting import Fault, cells, instead, models, norms, specs, weights
from tokentrail.errors import ParityError, WeightsError
from tokentrail.forward import frame
from tokentrail.forward.cells import attention, ffn, mamba2, norm
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.families import FAMILIES
from tokentrail.forward.place import Place
from tokentrail.forward.reading.recipe import Recipe
from tokentrail.forward.spec import Attention, Ffn, Layer, Mamba2
from tokentrail.forward.taps import NO_TAP
from tokentrail.measure.reference import reference_sites
from tokentrail.stages.parity import parity, parity_layers
from tokentrail.stages.parity.parity_gate import gate
from tokentrail.weights import load

TOLERANCE = 1e-3  # the default of stages.parity.tolerance


def halves_swapped(linear: Linear) -> Linear:
    return linear._replace(weight=linear.weight.roll(len(linear.weight) // 2, 0))


def by_length(x, eps):
    return x * (x.square().sum(-1, keepdim=True) + eps).rsqrt()


def neighbours(x, cos, sin):
    """Rotation that pairs channel 2i with channel 2i + 1."""
    a, b, cos = x[..., ::2], x[..., 1::2], cos[..., : x.shape[-1] // 2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)


def unmasked(q, k, v, spec, place):
    return F.scaled_dot_product_attention(q, k, v, scale=spec.scale, enable_gqa=spec.kv_heads != spec.heads)


def interleaved(fused):
    """Query heads 0, 2, 4 share the first key/value head, not 0, 1, 2."""

    def wrong(q, k, v, spec, place):
        k, v = (x.repeat(1, spec.heads // spec.kv_heads, 1, 1) for x in (k, v))
        return fused(q, k, v, spec, place)

    return wrong


class OneFurther(Place):
    def __init__(self, *given):
        super().__init__(*given)
        self.positions = self.positions + 1


def without_final_norm(model, x, tap=NO_TAP):
    layers = len(model.spec.layers)
    return tap("logits", layers, model.head(tap("final_norm", layers, x) / model.spec.logit_divisor))


def side_by_side(spec):
    return replace(spec, layers=tuple(Layer((layer.sublayers,)) for layer in spec.layers))


def spread_over_the_groups(unrolled):
    """Head h reads B and C of group h % groups, not of its own."""

    def wrong(dt, A, B, C):
        heads, groups = len(A), B.shape[2]
        order = torch.arange(heads).view(-1, groups).t().flatten()
        return unrolled(dt[..., order], A[order], B, C)[:, order.argsort()]

    return wrong


def with_own_fade(faded_and_written):
    """A write is faded by its own token as well as by those after it."""
    return lambda state, writes, dt, A, B: faded_and_written(state, writes * (dt * A).exp()[..., None], dt, A, B)


def in_bfloat16(named_tensors):
    def rounded(checkpoint):
        spec, tensor = named_tensors(checkpoint)
        return spec, lambda name: None if (t := tensor(name)) is None else t.bfloat16().to(t.dtype)

    return rounded


FAULTS = [
    # The feed-forward cells
    Fault("exact GELU", "gpt2", cells(Ffn, lambda cell: replace(cell, activation="gelu"))),
    Fault("gate and up swapped", "llama", weights(Ffn, lambda own: own._replace(up=halves_swapped(own.up)))),
    Fault("SiLU replaced by a sigmoid", "granite-nope", instead(ffn.ACTIVATIONS, "silu", lambda _: torch.sigmoid)),
    # Norms
    Fault("RMSNorm subtracts the mean", "llama", instead(norm, "unit_rms", lambda unit_rms: lambda x, eps: unit_rms(x - x.mean(-1, keepdim=True), eps))),
    Fault("RMSNorm divides by the length", "qwen3", instead(norm, "unit_rms", lambda _: by_length)),
    Fault("norm weight plus one", "qwen2", norms(lambda own, spec: (own._replace(weight=1 + own.weight), spec))),
    Fault("norm weight left out", "granite-nope", norms(lambda own, spec: (own._replace(weight=torch.ones_like(own.weight)), spec))),
    Fault("LayerNorm without its bias", "gpt2", norms(lambda own, spec: (own._replace(bias=None), spec))),
    Fault("epsilon fixed", "gpt2-inner", norms(lambda own, spec: (own, replace(spec, eps=1e-5)))),
    # Rotation
    Fault("neighbours rotated, not halves", "llama", instead(attention, "rotate", lambda _: neighbours)),
    Fault("rotation the other way", "llama", instead(attention, "rotate", lambda rotate: lambda x, cos, sin: rotate(x, cos, -sin))),
    # Attention
    Fault("keys and values swapped", "qwen2", instead(attention, "fused", lambda fused: lambda q, k, v, *rest: fused(q, v, k, *rest))),
    Fault("no causal mask", "gpt2", instead(attention, "fused", lambda _: unmasked)),
    Fault("key/value heads interleaved", "llama", instead(attention, "fused", interleaved)),
    Fault("output bias lost", "gpt2", weights(Attention, lambda own: own._replace(out=own.out._replace(bias=None)))),
    # The frame
    Fault("positions shifted by one", "gpt2", instead(frame, "Place", lambda _: OneFurther)),
    Fault("positions left out", "gpt2", models(lambda model: replace(model, positions=None))),
    Fault("final norm skipped", "llama", instead(frame, "unembed", lambda _: without_final_norm)),
    Fault("FFN reads the stream before the mixer", "qwen2", specs(side_by_side)),
    Fault("head tied that is not", "llama", models(lambda model: replace(model, head=Linear(model.tokens)))),
    Fault("first layer used everywhere", "qwen3", models(lambda model: replace(model, layers=model.layers[:1] * len(model.layers)))),
    # Mamba2
    Fault("gate left out", "granite-nope", instead(mamba2, "gated", lambda _: lambda y, gate: y)),
    Fault("gated norm over all groups", "granite-two-groups", instead(mamba2, "unit_rms", lambda unit_rms: lambda y, eps: unit_rms(y.flatten(2), eps).view_as(y))),
    Fault("no SiLU after the convolution", "granite-nope", instead(mamba2, "ACTIVATION", lambda _: lambda x: x)),
    Fault("convolution bias dropped", "granite-nope", weights(Mamba2, lambda own: own._replace(conv=own.conv._replace(bias=None)))),
    Fault("convolution reversed", "granite-nope", weights(Mamba2, lambda own: own._replace(conv=own.conv._replace(weight=own.conv.weight.flip(0))))),
    Fault("dt bias dropped", "granite-nope", weights(Mamba2, lambda own: own._replace(dt_bias=torch.zeros_like(own.dt_bias)))),
    Fault("softplus replaced by exp", "granite-nope", instead(mamba2, "step_sizes", lambda _: lambda dt, own, spec: (dt + own.dt_bias).exp())),
    Fault("A not exponentiated", "granite-nope", weights(Mamba2, lambda own: own._replace(A_log=own.A_log.log()))),
    Fault("D skip dropped", "granite-nope", weights(Mamba2, lambda own: own._replace(D=torch.zeros_like(own.D)))),
    Fault("B and C swapped", "granite-nope", instead(mamba2, "scan", lambda scan: lambda u, dt, A, B, C, state: scan(u, dt, A, C, B, state))),
    Fault("writes not scaled by dt", "granite-nope", instead(mamba2, "scan", lambda scan: lambda u, dt, *rest: scan(u / dt[..., None], dt, *rest))),
    Fault("state lost between chunks", "granite-nope", instead(mamba2, "faded_and_written", lambda _: lambda state, *rest: state)),
    Fault("own write faded too", "granite-nope", instead(mamba2, "faded_and_written", with_own_fade)),
    Fault("old state not faded", "granite-nope", instead(mamba2, "carried", lambda carried: lambda state, dt, A, C: carried(state, 0 * dt, A, C))),
    Fault("heads spread over the groups", "granite-two-groups", instead(mamba2, "unrolled", spread_over_the_groups)),
    # The loader
    Fault("weights rounded to bfloat16", "llama", instead(load, "named_tensors", in_bfloat16)),
    Fault("a joined tensor reversed", "qwen3", instead(Recipe, "ours", lambda ours: lambda self, stored: ours(self._replace(parts=self.parts[::-1]), stored))),
    # The families
    *(fault for cases in CASES.values() for fault in cases.faults),
]  # fmt: skip
REFUSED = [fault for cases in CASES.values() for fault in cases.refused]


def put_through_the_gate(pair) -> str:
    """The gate's own code: ours, as it is now, against the reference and against itself in float64."""
    with torch.inference_mode():
        model = load.load_model(pair.checkpoint)
        truth = load.load_model(pair.checkpoint, torch.float64)
        ids = pair.ids[:1]
        table = parity.compared(frame.forward(model, ids)[0], pair.logits[0], frame.forward(truth, ids)[0])
        seen = {}
        reference_sites(pair.reference, model.spec, ids, lambda site, layer, x: seen.update({(site, layer): x}))
        compare = parity_layers.Compare(seen)
        frame.forward(model, ids, tap=compare)
    table = table.with_columns(tolerance=pl.lit(TOLERANCE), prompt=pl.lit("random"))
    return gate(table, pl.DataFrame(compare.rows), "faulty")


@pytest.mark.parametrize("variant", sorted({fault.variant for fault in FAULTS}))
def test_the_gate_lets_the_sound_pass_through(pair, variant):
    assert "largest logit difference" in put_through_the_gate(pair(variant))


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.variant}: {fault.what}" for fault in FAULTS])
def test_the_gate_catches(pair, fault, monkeypatch):
    fault.plant(monkeypatch)
    with pytest.raises(ParityError, match=r"faulty fails the parity gate.* layer \d+, site \w+"):
        put_through_the_gate(pair(fault.variant))


@pytest.mark.parametrize("fault", REFUSED, ids=[f"{fault.variant}: {fault.what}" for fault in REFUSED])
def test_the_loader_refuses(pair, fault, monkeypatch):
    fault.plant(monkeypatch)
    with pytest.raises(WeightsError, match=r"the checkpoint (holds|lacks) the tensor|has the shape"):
        load.load_model(pair(fault.variant).checkpoint)


def test_every_family_has_its_variants_and_planted_faults():
    """In a file of its own, which bears the family's name: every model type of the family."""
    for name, cases in CASES.items():
        family = FAMILIES[next(iter(cases.variants.values()))["model_type"]]
        assert family.read.__module__ == f"tokentrail.forward.families.{name}"
        assert cases.model_types == set(family.model_types)
        assert {VARIANTS[fault.variant]["model_type"] for fault in cases.faults} == set(family.model_types)
    assert {config["model_type"] for config in VARIANTS.values()} == set(FAMILIES)
    assert len({fault.what for fault in FAULTS}) == len(FAULTS) >= 25
