"""A family that no other is like: attention and FFN side by side, norms before and after both, partial rotation.

The one file that a family needs: how its config.json is read, which stored tensors become which, where the reference
makes the same tensors. The reference itself, written plainly and registered with transformers, stands below.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import transformers
from tokentrail.forward.reading.config_reader import ConfigReader
from tokentrail.forward.reading.family import Family, Modules
from tokentrail.forward.reading.recipe import Recipe
from tokentrail.forward.spec import Attention, Ffn, Layer, Norm, Rope, Spec, SubLayer
from torch import Tensor, nn
from transformers.modeling_outputs import CausalLMOutput

ATTENTION_SCALE, MLP_SCALE = 0.8, 0.6
CONFIG = {
    "model_type": "parallel",
    "vocab_size": 97,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "rotary_channels": 4,
    "intermediate_size": 80,
    "max_position_embeddings": 512,
    "norm_eps": 1e-3,
    "rope_theta": 500.0,
}


def read(config: dict[str, Any]) -> Spec:
    c = ConfigReader(config)
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    before, after = (Norm(kind, c.real("norm_eps")) for kind in ("layernorm", "rmsnorm"))
    mixer = Attention(
        heads=heads,
        kv_heads=heads,
        head_dim=width // heads,
        scale=(width // heads) ** -0.5,
        rope=Rope(c.real("rope_theta")),
        qk_norm=None,
        qkv_bias=True,
        out_bias=True,
        partial=c.whole("rotary_channels"),
    )
    ffn = Ffn("gelu", gated=False, width=c.whole("intermediate_size"), bias=True)
    step = (SubLayer("mixer", mixer, before, after, ATTENTION_SCALE), SubLayer("ffn", ffn, before, after, MLP_SCALE))
    return Spec(
        family="parallel",
        vocabulary=c.whole("vocab_size"),
        width=width,
        layers=(Layer((step,)),) * c.whole("num_hidden_layers"),
        norm=before,
        learned_positions=None,
        trained_positions=c.whole("max_position_embeddings"),
        embedding_scale=1.0,
        logit_divisor=1.0,
        tied=False,
    )


def recipes(spec: Spec, stored: set[str]) -> tuple[dict[str, Recipe], set[str]]:
    out = {"tokens": Recipe(("tokens.weight",)), "head.weight": Recipe(("head.weight",))}
    out |= {f"final_norm.{kind}": Recipe((f"final_norm.{kind}",)) for kind in ("weight", "bias")}
    for i in range(len(spec.layers)):
        for kind in ("weight", "bias"):
            out[f"layers.{i}.mixer.qkv.{kind}"] = Recipe(tuple(f"layers.{i}.attention.{p}.{kind}" for p in "qkv"))
            for ours, theirs in (
                ("mixer_norm", "attention_norm"),
                ("mixer.out", "attention.out"),
                ("ffn_norm", "mlp_norm"),
                ("ffn.up", "mlp.up"),
                ("ffn.down", "mlp.down"),
            ):
                out[f"layers.{i}.{ours}.{kind}"] = Recipe((f"layers.{i}.{theirs}.{kind}",))
        for ours, theirs in (("mixer_norm_after", "attention_norm_after"), ("ffn_norm_after", "mlp_norm_after")):
            out[f"layers.{i}.{ours}.weight"] = Recipe((f"layers.{i}.{theirs}.weight",))
    return out, set()


FAMILY = Family(
    about=__doc__,
    model_types=("parallel",),
    read=read,
    recipes=recipes,
    modules=Modules(
        layers="layers",
        final_norm="final_norm",
        sites=lambda layer: {
            "mixer_in": "attention_norm",
            "mixer_out": "attention_norm_after",
            "ffn_in": "mlp_norm",
            "ffn_out": "mlp_norm_after",
        },
    ),
)


class ParallelConfig(transformers.PretrainedConfig):
    model_type = "parallel"


class PlainAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        for name in ("q", "k", "v", "out"):
            self.add_module(name, nn.Linear(config.hidden_size, config.hidden_size))

    def forward(self, x: Tensor) -> Tensor:
        rows, tokens, width = x.shape
        heads = self.config.num_attention_heads
        q, k, v = (part(x).view(rows, tokens, heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = self.turned(q), self.turned(k)
        scores = q @ k.transpose(-1, -2) / (width // heads) ** 0.5
        future = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        z = scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ v
        return self.out(z.transpose(1, 2).reshape(rows, tokens, width))

    def turned(self, x: Tensor) -> Tensor:
        """The first channels as complex numbers, channel i and i + half a pair, times exp(i angle)."""
        half = self.config.rotary_channels // 2
        position = torch.arange(x.shape[2], dtype=torch.float64)
        frequency = torch.tensor([self.config.rope_theta ** (-i / half) for i in range(half)], dtype=torch.float64)
        turn = torch.polar(torch.ones(len(position), half, dtype=torch.float64), position[:, None] * frequency)
        pairs = torch.complex(x[..., :half].double(), x[..., half : 2 * half].double()) * turn
        return torch.cat([pairs.real.to(x.dtype), pairs.imag.to(x.dtype), x[..., 2 * half :]], dim=-1)


class PlainMlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class PlainLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, eps = config.hidden_size, config.norm_eps
        self.attention, self.mlp = PlainAttention(config), PlainMlp(config)
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.attention_norm_after, self.mlp_norm_after = nn.RMSNorm(width, eps), nn.RMSNorm(width, eps)

    def forward(self, x: Tensor) -> Tensor:
        attention = self.attention_norm_after(self.attention(self.attention_norm(x)))
        mlp = self.mlp_norm_after(self.mlp(self.mlp_norm(x)))
        return x + ATTENTION_SCALE * attention + MLP_SCALE * mlp


class ParallelForCausalLM(transformers.PreTrainedModel):
    config_class = ParallelConfig

    def __init__(self, config):
        super().__init__(config)
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(PlainLayer(config) for _ in range(config.num_hidden_layers))
        self.final_norm = nn.LayerNorm(config.hidden_size, config.norm_eps)
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, input_ids: Tensor, use_cache: bool = False) -> CausalLMOutput:
        x = self.tokens(input_ids)
        for layer in self.layers:
            x = layer(x)
        return CausalLMOutput(logits=self.head(self.final_norm(x)))


transformers.AutoConfig.register("parallel", ParallelConfig)
transformers.AutoModelForCausalLM.register(ParallelConfig, ParallelForCausalLM)
