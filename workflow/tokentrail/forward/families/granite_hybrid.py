"""Granite 4.0 (IBM 2025), without experts: Mamba2 and attention layers, and a multiplier at every joint."""

from __future__ import annotations

from typing import Any

from tokentrail.forward.families.llama import attention_recipes, outside_layers
from tokentrail.forward.reading.config_reader import ConfigReader
from tokentrail.forward.reading.family import Family, Modules
from tokentrail.forward.reading.recipe import SQUEEZED, Recipe
from tokentrail.forward.spec import Attention, Ffn, Mamba2, Norm, Spec, sequential

KINDS = {
    "mamba": "mamba2",
    "linear_attention": "mamba2",
    "attention": "attention",
    "full_attention": "attention",
}


def read(config: dict[str, Any]) -> Spec:
    c = ConfigReader(config)
    c.only("num_local_experts", 0, None)
    c.get("num_experts_per_tok", 0)  # without experts it has no meaning, as has their width
    c.get("intermediate_size", 0)
    c.only("hidden_act", "silu")
    c.only("normalization_function", "rmsnorm", absent="rmsnorm")
    norm = Norm("rmsnorm", c.real("rms_norm_eps"))
    width = c.whole("hidden_size")
    cells = {"attention": read_attention(c, width), "mamba2": read_mamba2(c, width, norm)}
    kinds = c.get("layer_types", c.config.get("layers_block_type"))
    c.get("layers_block_type", None)
    if not isinstance(kinds, list) or len(kinds) != c.whole("num_hidden_layers"):
        raise c.refuse("layer_types", kinds, "a list with one kind for each of num_hidden_layers")
    for kind in kinds:
        if kind not in list(KINDS):  # whatever stands there: not all values can be looked up
            raise c.refuse("layer_types", kind, ", ".join(KINDS))
    scale = c.real("residual_multiplier")
    ffn = Ffn("silu", gated=True, width=c.whole("shared_intermediate_size"), bias=False)
    spec = Spec(
        family="granitemoehybrid",
        vocabulary=c.whole("vocab_size"),
        width=width,
        layers=tuple(sequential(cells[KINDS[kind]], ffn, norm, scale) for kind in kinds),
        norm=norm,
        learned_positions=None,
        trained_positions=c.whole("max_position_embeddings"),
        embedding_scale=c.real("embedding_multiplier"),
        logit_divisor=c.real("logits_scaling"),
        tied=c.flag("tie_word_embeddings"),
    )
    c.done()
    return spec


def read_attention(c: ConfigReader, width: int) -> Attention:
    heads, kv_heads = c.whole("num_attention_heads"), c.whole("num_key_value_heads")
    c.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    position = c.only("position_embedding_type", "rope", "nope", None)
    stated = c.get("head_dim", None)
    rope = c.rope() if position == "rope" else None
    if rope is None:  # without rotation these have no effect
        for key in ("rope_theta", "rope_scaling", "rope_parameters"):
            c.get(key, None)
    bias = c.flag("attention_bias")
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=c.divides("num_attention_heads", heads, width, "hidden_size")
        if stated is None
        else c.whole("head_dim"),
        scale=c.real("attention_multiplier"),  # in place of 1/sqrt(head_dim)
        rope=rope,
        qk_norm=None,
        qkv_bias=bias,
        out_bias=bias,
    )


def read_mamba2(c: ConfigReader, width: int, norm: Norm) -> Mamba2:
    heads, groups, inner = (
        c.whole("mamba_n_heads"),
        c.whole("mamba_n_groups"),
        c.whole("mamba_expand") * width,
    )
    head_dim = c.divides("mamba_n_heads", heads, inner, "mamba_expand * hidden_size")
    c.only("mamba_d_head", head_dim, "auto")
    c.divides("mamba_n_groups", groups, heads, "mamba_n_heads")
    limits = c.get("time_step_limit", None) or (0.0, float("inf"))  # absent: no limit, as in Mamba2
    if not isinstance(limits, list | tuple) or len(limits) != 2:
        raise c.refuse("time_step_limit", limits, "the smallest and the largest step")
    low, high = (c.number("time_step_limit", limit, infinite=True) for limit in limits)
    return Mamba2(
        heads=heads,
        head_dim=head_dim,
        groups=groups,
        state_size=c.whole("mamba_d_state"),
        conv_width=c.whole("mamba_d_conv"),
        conv_bias=c.flag("mamba_conv_bias"),
        proj_bias=c.flag("mamba_proj_bias"),
        dt_min=low,
        dt_max=high,
        eps=norm.eps,
    )


def recipes(spec: Spec, stored: set[str]) -> tuple[dict[str, Recipe], set[str]]:
    """The FFN's input matrix already holds gate, then up."""
    out = outside_layers(spec)
    for i, layer in enumerate(spec.layers):
        stem = f"model.layers.{i}"
        out[f"layers.{i}.mixer_norm.weight"] = Recipe((f"{stem}.input_layernorm.weight",))
        out[f"layers.{i}.ffn_norm.weight"] = Recipe((f"{stem}.post_attention_layernorm.weight",))
        out[f"layers.{i}.ffn.up.weight"] = Recipe((f"{stem}.shared_mlp.input_linear.weight",))
        out[f"layers.{i}.ffn.down.weight"] = Recipe((f"{stem}.shared_mlp.output_linear.weight",))
        if isinstance(layer.mixer, Attention):
            out |= attention_recipes(layer.mixer, f"layers.{i}.mixer", f"{stem}.self_attn")
        else:
            out |= mamba2_recipes(layer.mixer, f"layers.{i}.mixer", f"{stem}.mamba")
    return out, set()


def mamba2_recipes(cell: Mamba2, ours: str, theirs: str) -> dict[str, Recipe]:
    out = {f"{ours}.{name}": Recipe((f"{theirs}.{name}",)) for name in ("dt_bias", "A_log", "D")}
    out[f"{ours}.norm"] = Recipe((f"{theirs}.norm.weight",))
    out[f"{ours}.conv.weight"] = Recipe((f"{theirs}.conv1d.weight",), SQUEEZED)
    if cell.conv_bias:
        out[f"{ours}.conv.bias"] = Recipe((f"{theirs}.conv1d.bias",))
    for name in ("in_proj", "out_proj"):
        for kind in ("weight", "bias") if cell.proj_bias else ("weight",):
            out[f"{ours}.{name}.{kind}"] = Recipe((f"{theirs}.{name}.{kind}",))
    return out


FAMILY = Family(
    about=__doc__,
    model_types=("granitemoehybrid",),
    read=read,
    recipes=recipes,
    modules=Modules(
        layers="model.layers",
        final_norm="model.norm",
        sites=lambda layer: {
            "mixer_in": "input_layernorm",
            "mixer_out": "self_attn" if isinstance(layer.mixer, Attention) else "mamba",
            "ffn_in": "post_attention_layernorm",
            "ffn_out": "shared_mlp",
        },
    ),
)
