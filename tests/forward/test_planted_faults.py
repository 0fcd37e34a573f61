"""The gate must catch every one of these: single changes of one line in the cells, the families and the loader.

Each is planted in a fresh import of the library, the faulty pass is put through the parity tables at the default
tolerance, and the gate must refuse it and name a layer and a site.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

import pytest
import torch
from mutation import mutated
from random_models import VARIANTS

TOLERANCE = 1e-3  # the default of stages.parity.tolerance


class Fault(NamedTuple):
    what: str
    variant: str  # a model that has the part
    file: str
    old: str
    new: str


ATTENTION, FFN, MAMBA = "forward/cells/attention.py", "forward/cells/ffn.py", "forward/cells/mamba2.py"
NORM, ROPE, FRAME, PLACE = ("forward/" + f for f in ("cells/norm.py", "cells/rope.py", "frame.py", "place.py"))
GPT2, LLAMA, QWEN3, GRANITE = (f"forward/families/{f}.py" for f in ("gpt2", "llama", "qwen3", "granite_hybrid"))
ASSEMBLE, LOAD = "forward/assemble.py", "weights/load.py"

FAULTS = [
    # The feed-forward cells
    Fault("exact GELU", "gpt2", FFN, 'approximate="tanh"', 'approximate="none"'),
    Fault("gate and up swapped", "llama", FFN, "gate, up = h.chunk", "up, gate = h.chunk"),
    Fault("SiLU replaced by a sigmoid", "granite-nope", FFN, '"silu": F.silu', '"silu": lambda x: x.sigmoid()'),
    # Norms
    Fault("RMSNorm subtracts the mean", "llama", NORM, "w = wide(x)", "w = wide(x) - x.mean(-1, keepdim=True)"),
    Fault("RMSNorm divides by the length", "qwen3", NORM, "w.square().mean(-1, keepdim=True)", "w.square().sum(-1, keepdim=True)"),
    Fault("norm weight plus one", "qwen2", NORM, ".mul_(weights.weight)", ".mul_(1 + weights.weight)"),
    Fault("norm weight left out", "granite-nope", NORM, ".mul_(weights.weight)", ""),
    Fault("LayerNorm without its bias", "gpt2", NORM, "weights.weight, weights.bias, spec.eps", "weights.weight, None, spec.eps"),
    Fault("epsilon fixed", "gpt2-inner", NORM, "weights.bias, spec.eps)", "weights.bias, 1e-5)"),
    # Rotation
    Fault("neighbours rotated, not halves", "llama", ROPE, "x.chunk(2, dim=-1)", "x[..., ::2], x[..., 1::2]"),
    Fault("rotation the other way", "llama", ROPE, "sin.to(dtype)", "-sin.to(dtype)"),
    Fault("queries not rotated", "qwen3", ATTENTION, "qk = rotate(qk, cos, sin)", "qk = torch.cat([qk[:, : spec.heads], rotate(qk[:, spec.heads :], cos, sin)], dim=1)"),
    Fault("theta ignored", "llama-theta", ROPE, "spec.theta**-exponents", "10000.0**-exponents"),
    Fault("Llama-3 scaling ignored", "llama3-scaling", ROPE, "if spec.scaling is None:", "if True:"),
    Fault("Llama-3 blend reversed", "llama3-scaling", ROPE, "(kept + (1 - kept) / s.factor)", "(1 - kept + kept / s.factor)"),
    Fault("rotation where there is none", "granite-nope", GRANITE, 'if position == "rope" else None', 'if True else None'),
    Fault("no rotation where there is one", "granite-rope", GRANITE, 'if position == "rope" else None', 'if False else None'),
    # Attention
    Fault("scale forgotten", "granite-nope", GRANITE, 'scale=c.real("attention_multiplier")', "scale=(c.real('attention_multiplier'), 1.0)[1]"),
    Fault("scale of the hidden size", "llama-head-dim", LLAMA, "scale=head_dim**-0.5", "scale=(width // heads) ** -0.5"),
    Fault("keys and values swapped", "qwen2", ATTENTION, 'q, k, v = tap("q"', 'q, v, k = tap("q"'),
    Fault("no causal mask", "gpt2", ATTENTION, "is_causal=causal", "is_causal=False"),
    Fault("key/value heads interleaved", "llama", ATTENTION, "    return F.scaled_dot_product_attention(\n        q,\n        k,\n        v,", "    k, v = (t.repeat(1, 3, 1, 1) for t in (k, v))\n    return F.scaled_dot_product_attention(\n        q,\n        k,\n        v,"),
    Fault("qk-norm dropped", "qwen3", ATTENTION, "qk = norm(qk, weights.qk_norm, spec.qk_norm)", "pass"),
    Fault("q normalised with k's weight", "qwen3", ATTENTION, '(tensor("q_norm.weight"), spec.heads)', '(tensor("k_norm.weight"), spec.heads)'),
    Fault("qk-norm after the rotation", "qwen3", ATTENTION, "    if spec.qk_norm is not None:\n        qk = norm(qk, weights.qk_norm, spec.qk_norm)\n    if spec.rope is not None:\n        cos, sin = place.rotation(spec.rope, spec.rotated, x.dtype)\n        qk = rotate(qk, cos, sin)\n", "    cos, sin = place.rotation(spec.rope, spec.rotated, x.dtype)\n    qk = norm(rotate(qk, cos, sin), weights.qk_norm, spec.qk_norm)\n"),
    # The frame
    Fault("embedding multiplier forgotten", "granite-nope", FRAME, " * model.spec.embedding_scale", ""),
    Fault("residual multiplier forgotten on the mixer", "granite-nope", FRAME, "alpha=sub.scale", 'alpha=1 if sub.name == "mixer" else sub.scale'),
    Fault("residual multiplier forgotten on the FFN", "granite-nope", FRAME, "alpha=sub.scale", 'alpha=1 if sub.name == "ffn" else sub.scale'),
    Fault("logits multiplied, not divided", "granite-nope", FRAME, "x / model.spec.logit_divisor", "x * model.spec.logit_divisor"),
    Fault("positions shifted by one", "gpt2", PLACE, "self.positions = (before + steps)[None]", "self.positions = (before + steps + 1)[None]"),
    Fault("positions left out", "gpt2", FRAME, "if model.positions is not None:", "if False:"),
    Fault("final norm skipped", "llama", FRAME, 'norm(x, model.final_norm, model.spec.norm)', 'x'),
    Fault("FFN reads the stream before the mixer", "qwen2", FRAME, "read = x", 'read = x if stream == "resid_mid" else read'),
    # Mamba2
    Fault("gate left out", "granite-nope", MAMBA, "F.silu(wide(gate)).mul_(y.reshape(rows, tokens, spec.inner))", "y.reshape(rows, tokens, spec.inner)"),
    Fault("gated norm over all groups", "granite-two-groups", MAMBA, "unit_rms(y.view(rows, tokens, spec.groups, -1), spec.eps)", "unit_rms(y, spec.eps)"),
    Fault("no SiLU after the convolution", "granite-nope", MAMBA, 'F.silu(xBC))', "xBC)"),
    Fault("convolution bias dropped", "granite-nope", MAMBA, "out += conv.bias", "pass"),
    Fault("convolution reversed", "granite-nope", MAMBA, "conv.weight[lag])", "conv.weight[reach - lag])"),
    Fault("dt bias dropped", "granite-nope", MAMBA, "wide(dt) + wide(weights.dt_bias)", "wide(dt)"),
    Fault("dt limits ignored", "granite-dt-limits", MAMBA, ".clamp(spec.dt_min, spec.dt_max)", ""),
    Fault("softplus replaced by exp", "granite-nope", MAMBA, "F.softplus(wide(dt) + wide(weights.dt_bias))", "torch.exp(wide(dt) + wide(weights.dt_bias))"),
    Fault("A not exponentiated", "granite-nope", MAMBA, "A = -torch.exp(wide(weights.A_log))", "A = -wide(weights.A_log)"),
    Fault("D skip dropped", "granite-nope", MAMBA, "torch.addcmul(y, wide(weights.D)[:, None], u)", "y"),
    Fault("B and C swapped", "granite-nope", MAMBA, "u, B, C = wide(xBC)", "u, C, B = wide(xBC)"),
    Fault("state lost between chunks", "granite-nope", MAMBA, "state = faded_and_written(state, w", "faded_and_written(state, w"),
    Fault("own write faded too", "granite-nope", MAMBA, "(total[:, -1:] - total).exp()", "(total[:, -1:] - total + dt * A).exp()"),
    Fault("old state not faded", "granite-nope", MAMBA, "return read * (dt * A).cumsum(dim=1).exp()[..., None]", "return read"),
    Fault("heads spread over the groups", "granite-two-groups", MAMBA, "by_group.view(rows, heads, tokens, tokens)", "by_group.transpose(1, 2).reshape(rows, heads, tokens, tokens)"),
    Fault("writes not scaled by dt", "granite-nope", MAMBA, "ys, writes = [], u * dt[..., None]", "ys, writes = [], u"),
    # The families' maps
    Fault("square matrix not transposed", "gpt2", GPT2, 'turn = "as stored" if ours.endswith("norm") else', 'turn = "as stored" if ours.endswith(("norm", "out")) else'),
    Fault("the two norms of a layer swapped", "gpt2", GPT2, 'stem = f"{at}h.{i}.{theirs}"', 'stem = f"{at}h.{i}.{theirs}".replace("ln_1", "ln_0").replace("ln_2", "ln_1").replace("ln_0", "ln_2")'),
    Fault("q, k, v joined in another order", "llama-multi-head", LLAMA, '_proj.weight" for p in "qkv"', '_proj.weight" for p in "kqv"'),
    Fault("up before gate", "llama", LLAMA, '(f"{stem}.mlp.gate_proj.{kind}", f"{stem}.mlp.up_proj.{kind}")', '(f"{stem}.mlp.up_proj.{kind}", f"{stem}.mlp.gate_proj.{kind}")'),
    Fault("biases of q, k, v in another order", "qwen2", LLAMA, '_proj.bias" for p in "qkv"', '_proj.bias" for p in "qvk"'),
    Fault("head tied that is not", "llama", ASSEMBLE, 'tokens if spec.tied else tensor("head.weight")', "tokens"),
    Fault("first layer used everywhere", "qwen3", ASSEMBLE, 'sublayer(f"layers.{i}.{sub.name}", sub.cell)', 'sublayer(f"layers.0.{sub.name}", sub.cell)'),
    # The loader
    Fault("output bias lost", "gpt2", ATTENTION, "return weights.out(z.transpose(1, 2).reshape(rows, tokens, -1)), state", "return F.linear(z.transpose(1, 2).reshape(rows, tokens, -1), weights.out.weight), state"),
    Fault("weights rounded to bfloat16", "llama", LOAD, "made.to(device=device, dtype=dtype, copy=True)", "made.to(device=device, dtype=torch.bfloat16).to(dtype)"),
    Fault("a joined tensor reversed", "qwen3", LOAD, "torch.cat(parts)", "torch.cat(parts[::-1])"),
]  # fmt: skip


REFUSED_WHILE_LOADING = [
    Fault("a family without its qk-norm", "qwen3", QWEN3, "qk_norm=True", "qk_norm=False"),
    Fault("layer kinds in reverse", "granite-nope", GRANITE, "for kind in kinds),", "for kind in reversed(kinds)),"),
    Fault("one norm used twice", "gpt2", GPT2, '"mixer_norm": "ln_1"', '"mixer_norm": "ln_2"'),
    Fault("matrix not transposed", "gpt2", GPT2, 'else "transpose"', 'else "as stored"'),
    Fault("an untied head unread", "llama", LLAMA, "return out if spec.tied else", "return out if True else"),
]  # fmt: skip


def put_through_the_gate(pair):
    """The gate's own code, freshly imported: ours, as mutated, against the reference and against itself in float64."""
    parity = importlib.import_module("tokentrail.stages.parity.parity")
    layers = importlib.import_module("tokentrail.stages.parity.parity_layers")
    gate = importlib.import_module("tokentrail.stages.parity.parity_gate").gate
    frame = importlib.import_module("tokentrail.forward.frame")
    load = importlib.import_module("tokentrail.weights.load")
    reference_sites = importlib.import_module("tokentrail.measure.reference").reference_sites
    import polars as pl

    with torch.inference_mode():
        model = load.load_model(pair.checkpoint)
        truth = load.load_model(pair.checkpoint, torch.float64)
        ids = pair.ids[:1]
        table = parity.compared(frame.forward(model, ids)[0], pair.logits[0], frame.forward(truth, ids)[0])
        seen = {}
        reference_sites(pair.reference, model.spec, ids, lambda site, layer, x: seen.update({(site, layer): x}))
        compare = layers.Compare(seen)
        frame.forward(model, ids, tap=compare)
    table = table.with_columns(tolerance=pl.lit(TOLERANCE), prompt=pl.lit("random"))
    return gate(table, pl.DataFrame(compare.rows), "faulty")


@pytest.mark.parametrize("variant", sorted({fault.variant for fault in FAULTS}))
def test_the_gate_lets_the_sound_pass_through(pair, variant):
    assert "largest logit difference" in put_through_the_gate(pair(variant))


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_the_gate_catches(pair, fault):
    sound = pair(fault.variant)
    sound.logits  # noqa: B018 - the reference speaks before the fault is planted
    with mutated(fault.file, fault.old, fault.new):
        refusal = importlib.import_module("tokentrail.errors").ParityError
        with pytest.raises(refusal, match=r"faulty fails the parity gate.* layer \d+, site \w+"):
            put_through_the_gate(sound)


@pytest.mark.parametrize("fault", REFUSED_WHILE_LOADING, ids=[fault.what for fault in REFUSED_WHILE_LOADING])
def test_the_loader_refuses(pair, fault):
    sound = pair(fault.variant)
    with mutated(fault.file, fault.old, fault.new):
        refusal = importlib.import_module("tokentrail.errors").WeightsError
        with pytest.raises(refusal, match=r"the checkpoint (holds|lacks) the tensor|has the shape"):
            importlib.import_module("tokentrail.weights.load").load_model(sound.checkpoint)


def test_every_family_has_planted_faults():
    families = {VARIANTS[fault.variant]["model_type"] for fault in FAULTS}
    assert families == {"gpt2", "llama", "qwen2", "qwen3", "granitemoehybrid"}
    assert len(FAULTS) >= 25
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS)
