"""GPT-2 (Radford et al. 2019): learned positions, LayerNorm, biases everywhere, GELU in its tanh form, tied head."""

from __future__ import annotations

from typing import Any

from tokentrail.forward.reading.config_reader import ConfigReader
from tokentrail.forward.reading.family import Family, Modules
from tokentrail.forward.reading.recipe import AS_STORED, TRANSPOSED, Recipe, prefixed
from tokentrail.forward.spec import Attention, Ffn, Norm, Spec, sequential


def read(config: dict[str, Any]) -> Spec:
    c = ConfigReader(config)
    width, heads, positions = c.whole("n_embd"), c.whole("n_head"), c.whole("n_positions")
    head_dim = c.divides("n_head", heads, width, "n_embd")
    c.only("activation_function", "gelu_new", "gelu_pytorch_tanh")  # two names of the tanh form
    c.only("scale_attn_weights", True, absent=True)
    c.only("scale_attn_by_inverse_layer_idx", False, absent=False)
    c.only("reorder_and_upcast_attn", False, absent=False)
    c.only("add_cross_attention", False, absent=False)
    c.only("tie_word_embeddings", True, absent=True)  # the family's rule; hub configs do not repeat it
    norm = Norm("layernorm", c.real("layer_norm_epsilon"))
    mixer = Attention(
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        scale=head_dim**-0.5,
        rope=None,
        qk_norm=None,
        qkv_bias=True,
        out_bias=True,
    )
    inner = c.get("n_inner", None)
    ffn = Ffn("gelu_tanh", gated=False, width=4 * width if inner is None else c.whole("n_inner"), bias=True)
    spec = Spec(
        family="gpt2",
        vocabulary=c.whole("vocab_size"),
        width=width,
        layers=(sequential(mixer, ffn, norm),) * c.whole("n_layer"),
        norm=norm,
        learned_positions=positions,
        trained_positions=positions,
        embedding_scale=1.0,
        logit_divisor=1.0,
        tied=True,
    )
    c.done()
    return spec


def recipes(spec: Spec, stored: set[str]) -> tuple[dict[str, Recipe], set[str]]:
    """Conv1D stores its matrices (in, out), so they are transposed; c_attn holds q, k, v in that order."""
    at = prefixed(stored, ("transformer.", ""), "wte.weight")
    out = {"tokens": Recipe((f"{at}wte.weight",)), "positions": Recipe((f"{at}wpe.weight",))}
    names = {
        "mixer_norm": "ln_1",
        "mixer.qkv": "attn.c_attn",
        "mixer.out": "attn.c_proj",
        "ffn_norm": "ln_2",
        "ffn.up": "mlp.c_fc",
        "ffn.down": "mlp.c_proj",
    }
    for i in range(len(spec.layers)):
        for ours, theirs in names.items():
            stem = f"{at}h.{i}.{theirs}"
            turn = AS_STORED if ours.endswith("norm") else TRANSPOSED
            out[f"layers.{i}.{ours}.weight"] = Recipe((f"{stem}.weight",), turn)
            out[f"layers.{i}.{ours}.bias"] = Recipe((f"{stem}.bias",))
    out |= {f"final_norm.{part}": Recipe((f"{at}ln_f.{part}",)) for part in ("weight", "bias")}
    masks = {name for name in stored if name.endswith((".attn.bias", ".attn.masked_bias"))}  # causal mask buffers
    return out, masks


FAMILY = Family(
    about=__doc__,
    model_types=("gpt2",),
    read=read,
    recipes=recipes,
    modules=Modules(
        layers="transformer.h",
        final_norm="transformer.ln_f",
        sites=lambda layer: {"mixer_in": "ln_1", "mixer_out": "attn", "ffn_in": "ln_2", "ffn_out": "mlp"},
    ),
)
