"""`parity` and `parity_layers`, with a pass that is not the reference's: differences far above rounding."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import transformers
from column_checks import recomputes
from definitions import in_order, mean, run, seen
from tokentrail.stages.parity import parity, parity_layers
from tokentrail.weights.load import load_model


@pytest.fixture(scope="module")
def apart(tiny):
    """The tiny model in float32 with one weight changed, and transformers' own of the unchanged checkpoint."""
    loaded = tiny.fresh()
    layers = list(loaded.model.layers)
    ffn = layers[-1]["ffn"]
    up = ffn.cell.up._replace(weight=ffn.cell.up.weight * 1.5)
    layers[-1] = layers[-1] | {"ffn": ffn._replace(cell=ffn.cell._replace(up=up))}
    loaded = dataclasses.replace(loaded, model=dataclasses.replace(loaded.model, layers=tuple(layers)))
    reference = transformers.AutoModelForCausalLM.from_pretrained(
        tiny.folder, dtype=torch.float32, attn_implementation="eager"
    )
    return loaded, reference.eval()


@recomputes(
    "parity",
    *("prompt", "position", "max_abs_logit_diff", "mean_abs_logit_diff", "top1_agrees", "max_abs_error_ours"),
    *("max_abs_error_reference", "max_abs_logit", "tolerance"),
    key=("prompt", "position"),
    rel=1e-3,
    close=1e-6,
)
def test_parity(tiny, apart):
    loaded, reference = apart
    truth = load_model(tiny.checkpoint, torch.float64)
    rows = []
    for prompt, ids, _ in tiny.prompts():
        with torch.inference_mode():
            theirs = reference(torch.tensor([ids]), use_cache=False).logits[0].tolist()
        passes = zip(run(loaded.model, ids).tolist(), theirs, run(truth, ids).tolist(), strict=True)
        for position, (a, b, true) in enumerate(passes):
            apart_by = [abs(x - y) for x, y in zip(a, b, strict=True)]
            rows.append(
                {
                    "prompt": prompt,
                    "position": position,
                    "max_abs_logit_diff": max(apart_by),
                    "mean_abs_logit_diff": mean(apart_by),
                    "top1_agrees": in_order(a)[0] == in_order(b)[0],
                    "max_abs_error_ours": max(abs(x - y) for x, y in zip(a, true, strict=True)),
                    "max_abs_error_reference": max(abs(x - y) for x, y in zip(b, true, strict=True)),
                    "max_abs_logit": max(abs(x) for x in true),
                    "tolerance": 0.5,
                }
            )
    assert max(row["max_abs_logit_diff"] for row in rows) > 1e-2
    assert {row["top1_agrees"] for row in rows} == {True, False}
    return parity.measure(loaded, tiny.settings(tolerance=0.5)), rows


MODULES = {  # our site, and the module of a transformers layer that gives it
    "gpt2": {"mixer_in": "ln_1", "mixer_out": "attn", "ffn_in": "ln_2", "ffn_out": "mlp"},
    "qwen3": {
        "mixer_in": "input_layernorm",
        "mixer_out": "self_attn",
        "ffn_in": "post_attention_layernorm",
        "ffn_out": "mlp",
    },
    "granite": {
        "mixer_in": "input_layernorm",
        "mixer_out": ("mamba", "self_attn"),
        "ffn_in": "post_attention_layernorm",
        "ffn_out": "shared_mlp",
    },
}


@recomputes(
    "parity_layers",
    *("prompt", "layer", "site", "max_abs_diff", "max_abs_value"),
    key=("prompt", "layer", "site"),
    rel=1e-3,
    close=1e-6,
)
def test_parity_layers(tiny, apart):
    loaded, reference = apart
    rows, last = [], len(tiny.kinds)
    for prompt, ids, _ in tiny.prompts():
        theirs = reference_tensors(tiny, reference, ids)
        sites = {site for site, _ in theirs}
        ours = seen(loaded.model, ids, *sites)
        for (site, layer), tensor in theirs.items():
            own, other = ours[site, layer].flatten().tolist(), tensor.flatten().tolist()
            rows.append(
                {
                    "prompt": prompt,
                    "layer": layer,
                    "site": site,
                    "max_abs_diff": max(abs(a - b) for a, b in zip(own, other, strict=True)),
                    "max_abs_value": max(abs(b) for b in other),
                }
            )
    assert max(row["max_abs_diff"] for row in rows if row["layer"] == last) > 1e-2
    return parity_layers.measure(loaded, tiny.settings()), rows


def reference_tensors(tiny, reference, ids):
    """Each site and layer that transformers can show: its streams by its own option, the rest module by module."""
    body = reference.get_decoder()
    found, hooks = {}, []
    for layer, part in enumerate(body.h if tiny.name == "gpt2" else body.layers):
        for site, names in MODULES[tiny.name].items():
            names = (names,) if isinstance(names, str) else names
            (module,) = [m for name in names if (m := getattr(part, name, None)) is not None]

            def keep(module, given, out, at=(site, layer)):
                found[at] = (out[0] if isinstance(out, tuple) else out)[0]

            hooks.append(module.register_forward_hook(keep))
        hooks.append(
            part.register_forward_hook(
                lambda module, given, out, at=("resid_post", layer): found.update(
                    {at: (out[0] if isinstance(out, tuple) else out)[0]}
                )
            )
        )
    with torch.inference_mode():
        said = reference(torch.tensor([ids]), use_cache=False, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    streams = [stream[0] for stream in said.hidden_states]
    found |= {("resid_pre", layer): stream for layer, stream in enumerate(streams[:-1])}
    return found | {("final_norm", len(tiny.kinds)): streams[-1], ("logits", len(tiny.kinds)): said.logits[0]}
