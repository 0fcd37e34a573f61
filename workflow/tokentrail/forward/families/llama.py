"""Llama (Touvron et al. 2023; Llama 3 with stretched rotary frequencies) and Qwen2, its sibling with q, k, v biases."""

from __future__ import annotations

from typing import Any

from tokentrail.forward.reading.config_reader import ConfigReader
from tokentrail.forward.reading.family import Family, Modules
from tokentrail.forward.reading.recipe import Recipe
from tokentrail.forward.spec import Attention, Ffn, Norm, Spec, sequential


def read(config: dict[str, Any]) -> Spec:
    c = ConfigReader(config)
    if c.family == "qwen2":
        qkv_bias, out_bias = True, False  # the family's rule; its configs do not say it
    else:
        qkv_bias = out_bias = c.flag("attention_bias", absent=False)
    spec = read_rotary(c, qk_norm=False, qkv_bias=qkv_bias, out_bias=out_bias)
    c.done()
    return spec


def read_rotary(c: ConfigReader, qk_norm: bool, qkv_bias: bool, out_bias: bool) -> Spec:
    """What Llama and Qwen share: RMSNorm, rotated attention with grouped queries, SwiGLU."""
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    kv_heads = c.whole("num_key_value_heads", absent=heads)
    c.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    stated = c.get("head_dim", None)
    head_dim = c.divides("num_attention_heads", heads, width, "hidden_size") if stated is None else c.whole("head_dim")
    c.only("hidden_act", "silu")
    if c.family != "llama":
        c.only("use_sliding_window", False, absent=False)
        c.get("sliding_window", None)  # the size of a window that is not used
    kinds = c.get("layer_types", None) or []
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind != "full_attention":
            raise c.refuse("layer_types", kind, "'full_attention'")
    norm = Norm("rmsnorm", c.real("rms_norm_eps"))
    mixer = Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        scale=head_dim**-0.5,
        rope=c.rope(),
        qk_norm=norm if qk_norm else None,
        qkv_bias=qkv_bias,
        out_bias=out_bias,
    )
    ffn = Ffn("silu", gated=True, width=c.whole("intermediate_size"), bias=c.flag("mlp_bias", absent=False))
    return Spec(
        family=c.family,
        vocabulary=c.whole("vocab_size"),
        width=width,
        layers=(sequential(mixer, ffn, norm),) * c.whole("num_hidden_layers"),
        norm=norm,
        learned_positions=None,
        trained_positions=c.whole("max_position_embeddings"),
        embedding_scale=1.0,
        logit_divisor=1.0,
        tied=c.flag("tie_word_embeddings"),
    )


def recipes(spec: Spec, stored: set[str]) -> tuple[dict[str, Recipe], set[str]]:
    out = outside_layers(spec)
    for i, layer in enumerate(spec.layers):
        out |= attention_recipes(layer.mixer, f"layers.{i}.mixer", f"model.layers.{i}.self_attn")
        stem = f"model.layers.{i}"
        out[f"layers.{i}.mixer_norm.weight"] = Recipe((f"{stem}.input_layernorm.weight",))
        out[f"layers.{i}.ffn_norm.weight"] = Recipe((f"{stem}.post_attention_layernorm.weight",))
        for kind in ("weight", "bias") if layer.ffn.bias else ("weight",):
            gate_up = (f"{stem}.mlp.gate_proj.{kind}", f"{stem}.mlp.up_proj.{kind}")
            out[f"layers.{i}.ffn.up.{kind}"] = Recipe(gate_up)
            out[f"layers.{i}.ffn.down.{kind}"] = Recipe((f"{stem}.mlp.down_proj.{kind}",))
    rotary_buffers = {name for name in stored if name.endswith(".rotary_emb.inv_freq")}
    return out, rotary_buffers


def outside_layers(spec: Spec) -> dict[str, Recipe]:
    """The token table, the last norm and the head."""
    out = {
        "tokens": Recipe(("model.embed_tokens.weight",)),
        "final_norm.weight": Recipe(("model.norm.weight",)),
    }
    return out if spec.tied else out | {"head.weight": Recipe(("lm_head.weight",))}


def attention_recipes(cell: Attention, ours: str, theirs: str) -> dict[str, Recipe]:
    """q, k and v become one matrix, in that order."""
    rows = tuple(heads * cell.head_dim for heads in (cell.heads, cell.kv_heads, cell.kv_heads))
    out = {f"{ours}.out.weight": Recipe((f"{theirs}.o_proj.weight",))}
    for kind in ("weight", "bias") if cell.qkv_bias else ("weight",):
        out[f"{ours}.qkv.{kind}"] = Recipe(tuple(f"{theirs}.{p}_proj.{kind}" for p in "qkv"), rows=rows)
    if cell.out_bias:
        out[f"{ours}.out.bias"] = Recipe((f"{theirs}.o_proj.bias",))
    if cell.qk_norm is not None:
        out |= {f"{ours}.{p}_norm.weight": Recipe((f"{theirs}.{p}_norm.weight",)) for p in "qk"}
    return out


FAMILY = Family(
    about=__doc__,
    model_types=("llama", "qwen2"),
    read=read,
    recipes=recipes,
    modules=Modules(
        layers="model.layers",
        final_norm="model.norm",
        sites=lambda layer: {
            "mixer_in": "input_layernorm",
            "mixer_out": "self_attn",
            "ffn_in": "post_attention_layernorm",
            "ffn_out": "mlp",
        },
    ),
)
