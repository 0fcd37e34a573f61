"""`residual`, `mlp`, `attribution` and `block`, from the tensors of one plain pass."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from column_checks import recomputes
from definitions import deviation, euclidean, in_order, last_logits, mean, rms, seen
from tiny_models import PROMPTS
from tokentrail.stages.attribution import measure as attribution
from tokentrail.stages.block import measure as block
from tokentrail.stages.mlp import measure as mlp
from tokentrail.stages.residual import measure as residual

STREAM = ("embed", "resid_pre", "mixer_in", "mixer_out", "resid_mid", "ffn_in", "ffn_out", "resid_post", "final_norm")


@recomputes(
    "residual",
    *("prompt", "position", "layer", "site", "l2_norm", "rms", "mean"),
    key=("prompt", "position", "layer", "site"),
)
def test_residual(tiny):
    rows = []
    for prompt, ids, _ in tiny.prompts():
        for (site, layer), tensor in seen(tiny.model, ids, *STREAM).items():
            scale = tiny.residual_scale if site in ("mixer_out", "ffn_out") else 1.0
            for position, vector in enumerate(tensor.tolist()):
                added = [scale * v for v in vector]
                rows.append(
                    {
                        "prompt": prompt,
                        "position": position,
                        "layer": 0 if site == "embed" else layer,
                        "site": site,
                        "l2_norm": euclidean(added),
                        "rms": rms(added),
                        "mean": mean(added),
                    }
                )
    assert len({row["site"] for row in rows}) == len(STREAM)
    return residual.measure(tiny.loaded, tiny.settings()), rows


@recomputes(
    "mlp",
    *("prompt", "layer", "position", "width", "near_zero_fraction", "negative_fraction", "max", "min"),
    key=("prompt", "layer", "position"),
)
def test_mlp(tiny):
    rows = []
    for prompt, ids, _ in tiny.prompts():
        for (_, layer), tensor in seen(tiny.model, ids, "ffn_act").items():
            for position, x in enumerate(tensor.tolist()):
                rows.append(
                    {
                        "prompt": prompt,
                        "layer": layer,
                        "position": position,
                        "width": len(x),
                        "near_zero_fraction": sum(abs(v) < 0.01 for v in x) / len(x),
                        "negative_fraction": sum(v < 0 for v in x) / len(x),
                        "max": max(x),
                        "min": min(x),
                    }
                )
    return mlp.measure(tiny.loaded, tiny.settings()), rows


LIKELY = {"likely": {"text": "Later, Bob Tom Tom Tom", "target": " Tom"}}  # what GPT-2's tiny model says itself


@recomputes(
    "attribution",
    *("prompt", "layer", "site", "head", "mixer", "target_token", "rival_token"),
    *("target_logit_contribution", "rival_logit_contribution"),
    key=("prompt", "layer", "site", "head"),
)
def test_attribution(tiny):
    rows, model, layers = [], tiny.model, len(tiny.kinds)
    for prompt, ids, target in tiny.prompts(PROMPTS | LIKELY):
        logits = last_logits(model, ids)
        assert (in_order(logits)[0] == target) == (prompt == "likely" and tiny.name == "gpt2")
        rival = next(token for token in in_order(logits) if token != target)
        tensors = seen(model, ids, "embed", "z", "ffn_out", "resid_post")
        stream = tensors["resid_post", layers - 1][-1].tolist()
        middle = mean(stream) if tiny.name == "gpt2" else 0.0
        eps = tiny.config.get("layer_norm_epsilon", tiny.config.get("rms_norm_eps"))
        divided = math.sqrt(mean([(v - middle) ** 2 for v in stream]) + eps)

        def share(vector, token, divided=divided):
            """What a vector in the stream adds to a token's logit, the last norm's divisor held."""
            own = sum(vector) / len(vector) if tiny.name == "gpt2" else 0.0
            normed = [(v - own) / divided * w for v, w in zip(vector, model.final_norm.weight.tolist(), strict=True)]
            return through_head(normed, token)

        def through_head(vector, token):
            row = model.head.weight[token].tolist()
            return sum(a * b for a, b in zip(row, vector, strict=True)) / tiny.config.get("logits_scaling", 1.0)

        added = [(0, "embed", None, "", tensors["embed", -1][-1].tolist())]
        for i, kind in enumerate(tiny.kinds):
            mixer = model.layers[i]["mixer"].cell
            out = mixer.out if kind == "attention" else mixer.out_proj
            for head, z in enumerate(tensors["z", i][:, -1]):
                columns = out.weight[:, head * len(z) : (head + 1) * len(z)]
                added.append((i, "z", head, kind, scaled(tiny, columns @ z)))
            if out.bias is not None:
                added.append((i, "mixer_bias", None, kind, scaled(tiny, out.bias)))
            added.append((i, "ffn_out", None, "", scaled(tiny, tensors["ffn_out", i][-1])))
        same = {"prompt": prompt, "target_token": tiny.text_of(target), "rival_token": tiny.text_of(rival)}
        own = [
            same
            | {"layer": layer, "site": site, "head": head, "mixer": kind}
            | {"target_logit_contribution": share(vector, target), "rival_logit_contribution": share(vector, rival)}
            for layer, site, head, kind, vector in added
        ]
        if model.final_norm.bias is not None:
            bias = model.final_norm.bias.tolist()
            about = {"layer": layers, "site": "final_norm_bias", "head": None, "mixer": ""}
            target_share, rival_share = through_head(bias, target), through_head(bias, rival)
            shares = {"target_logit_contribution": target_share, "rival_logit_contribution": rival_share}
            own.append(same | about | shares)
        assert math.isclose(sum(row["target_logit_contribution"] for row in own), logits[target], abs_tol=1e-9)
        rows += own
    return attribution.measure(tiny.loaded, tiny.settings(prompts=PROMPTS | LIKELY)), rows


def scaled(tiny, vector):
    return [tiny.residual_scale * v for v in vector.tolist()]


@recomputes(
    "block",
    *("prompt", "layer", "mixer", "order", "step", "site", "shape", "l2_norm", "rms", "mean", "deviation"),
    key=("prompt", "layer", "order"),
)
def test_block(tiny):
    rows = []
    for prompt, ids, _ in tiny.prompts():
        for kind in dict.fromkeys(tiny.kinds):
            layer = tiny.kinds.index(kind)
            for order, (step, site, tensor, x) in enumerate(steps(tiny, ids, layer)):
                rows.append(
                    {
                        "prompt": prompt,
                        "layer": layer,
                        "mixer": kind,
                        "order": order,
                        "step": step,
                        "site": site,
                        "shape": "x".join(map(str, (1, *tensor.shape))),
                        "l2_norm": euclidean(x),
                        "rms": rms(x),
                        "mean": mean(x),
                        "deviation": deviation(x),
                    }
                )
    return block.measure(tiny.loaded, tiny.settings()), rows


def steps(tiny, ids, layer):
    """Each step of a layer: its name, its site, its tensor without the row axis, its values at the last position."""
    names = ("resid_pre", "mixer_in", "q", "k", "v", "pattern", "conv_out", "dt", "ssm_y", "z", "mixer_out")
    names += ("resid_mid", "ffn_in", "ffn_act", "ffn_out", "resid_post")
    at = {site: x for (site, i), x in seen(tiny.model, ids, *names).items() if i == layer}
    weights = tiny.model.layers[layer]

    def of_tokens(name, site, tensor):  # (tokens, ...)
        return name, site, tensor, tensor[-1].flatten().tolist()

    def of_heads(name, site, tensor):  # (heads, tokens, ...)
        return name, site, tensor, tensor[:, -1].flatten().tolist()

    if layer == 0:
        scale = tiny.config.get("embedding_multiplier", 1.0)
        yield of_tokens("token rows", "token_rows", torch.stack([tiny.model.tokens[i] * scale for i in ids]))
        if tiny.name == "gpt2":
            yield of_tokens("position rows", "position_rows", tiny.model.positions[: len(ids)])
    yield of_tokens("stream entering", "resid_pre", at["resid_pre"])
    yield of_tokens("norm before the mixer", "mixer_in", at["mixer_in"])
    mix = attention_steps if tiny.kinds[layer] == "attention" else mamba2_steps
    yield from mix(tiny, weights["mixer"].cell, at, of_tokens, of_heads)
    yield of_tokens("stream after the mixer", "resid_mid", at["resid_mid"])
    yield of_tokens("norm before the FFN", "ffn_in", at["ffn_in"])
    widened = "FFN widened" if tiny.name == "gpt2" else "FFN gate and up together"
    yield of_tokens(widened, "ffn_up", product(weights["ffn"].cell.up, at["ffn_in"]))
    yield of_tokens("FFN activated", "ffn_act", at["ffn_act"])
    yield of_tokens("FFN update", "ffn_out", at["ffn_out"])
    yield of_tokens("stream leaving", "resid_post", at["resid_post"])


def product(linear, x):
    y = x @ linear.weight.T
    return y if linear.bias is None else y + linear.bias


def attention_steps(tiny, weights, at, of_tokens, of_heads):
    together = product(weights.qkv, at["mixer_in"])
    yield of_tokens("q, k and v together", "qkv", together)
    size, how = at["q"].shape[2], {"qwen3": "normalised and rotated"}.get(tiny.name)
    if how:
        by_head = [together[:, start : start + size] for start in range(0, together.shape[1], size)]
        yield of_heads("queries and keys by head", "qk", torch.stack(by_head[:6]))
    yield of_heads(f"queries, {how}" if how else "queries by head", "q", at["q"])
    yield of_heads(f"keys, {how}" if how else "keys by head", "k", at["k"])
    yield of_heads("values by head", "v", at["v"])
    shared = len(at["q"]) // len(at["k"])
    scale = tiny.config.get("attention_multiplier", size**-0.5)
    scores = [scale * q @ at["k"][head // shared].T for head, q in enumerate(at["q"])]
    yield of_heads("scores", "scores", torch.stack(scores))
    yield of_heads("attention weights", "pattern", at["pattern"])
    yield of_heads("weighted values", "z", at["z"])
    yield of_tokens("attention update", "mixer_out", at["mixer_out"])


def mamba2_steps(tiny, weights, at, of_tokens, of_heads):
    heads, groups, n = (tiny.config[key] for key in ("mamba_n_heads", "mamba_n_groups", "mamba_d_state"))
    inner, tokens = heads * tiny.config["mamba_d_head"], len(at["mixer_in"])
    together = product(weights.in_proj, at["mixer_in"])
    gate, conv = together[:, :inner], at["conv_out"]
    yield of_tokens("gate, x, B, C, dt together", "in_proj", together)
    yield of_tokens("gate", "gate", gate)
    yield of_tokens("x, B and C", "conv_in", together[:, inner:-heads])
    yield of_tokens("convolution and SiLU", "conv_out", conv)
    yield of_tokens("x by head", "ssm_x", conv[:, :inner].reshape(tokens, heads, -1))
    yield of_tokens("B", "B", conv[:, inner : inner + groups * n].reshape(tokens, groups, n))
    yield of_tokens("C", "C", conv[:, inner + groups * n :].reshape(tokens, groups, n))
    yield of_tokens("step sizes", "dt", at["dt"])
    yield of_heads("the recurrence unrolled", "pattern", at["pattern"])
    yield of_tokens("state read, plus the skip", "ssm_y", at["ssm_y"])
    yield of_tokens("gated", "gated", at["ssm_y"].reshape(tokens, -1) * F.silu(gate))
    yield of_heads("after the gated norm", "z", at["z"])
    yield of_tokens("Mamba2 update", "mixer_out", at["mixer_out"])
