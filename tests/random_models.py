"""Random transformers models of every family and variant, every parameter randomised, saved as real checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
import transformers
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import load_model
from torch import Tensor

SMALL = {
    "hidden_act": "silu",
    "vocab_size": 97,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
ROTARY = SMALL | {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
GRANITE = SMALL | {
    "hidden_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "shared_intermediate_size": 64,
    "intermediate_size": 64,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "layer_types": ["mamba", "attention", "mamba", "attention"],
    "position_embedding_type": "nope",
    "rope_theta": 10000.0,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.246,
    "attention_multiplier": 0.2,
    "logits_scaling": 3.0,
    "attention_bias": False,
    "mamba_n_heads": 12,
    "mamba_n_groups": 1,
    "mamba_d_state": 16,
    "mamba_d_head": 8,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_chunk_size": 8,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
GPT2 = {
    "activation_function": "gelu_new",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "vocab_size": 97,
    "n_positions": 256,
    "n_embd": 48,
    "n_layer": 3,
    "n_head": 6,
    "layer_norm_epsilon": 1e-5,
}

VARIANTS: dict[str, dict] = {
    "gpt2": {"model_type": "gpt2"} | GPT2,
    "gpt2-inner": {"model_type": "gpt2"} | GPT2 | {"n_inner": 100, "layer_norm_epsilon": 1e-3},
    "llama": {"model_type": "llama"} | ROTARY,
    "llama-tied": {"model_type": "llama"} | ROTARY | {"tie_word_embeddings": True},
    "llama-multi-head": {"model_type": "llama"} | ROTARY | {"num_key_value_heads": 6},
    "llama-head-dim": {"model_type": "llama"} | ROTARY | {"head_dim": 12},
    "llama-biases": {"model_type": "llama"} | ROTARY | {"attention_bias": True, "mlp_bias": True},
    "llama-theta": {"model_type": "llama"} | ROTARY | {"rope_theta": 500.0},
    "llama3-scaling": {"model_type": "llama"} | ROTARY | {"rope_parameters": LLAMA3, "rope_theta": None},
    "qwen2": {"model_type": "qwen2"} | ROTARY,
    "qwen3": {"model_type": "qwen3"} | ROTARY | {"head_dim": 16, "attention_bias": False},
    "qwen3-tied-bias": {"model_type": "qwen3"}
    | ROTARY
    | {"head_dim": 16, "attention_bias": True, "tie_word_embeddings": True},
    "granite-nope": {"model_type": "granitemoehybrid"} | GRANITE,
    "granite-rope": {"model_type": "granitemoehybrid"} | GRANITE | {"position_embedding_type": "rope"},
    "granite-two-groups": {"model_type": "granitemoehybrid"} | GRANITE | {"mamba_n_groups": 2, "attention_bias": True},
    "granite-new-spelling": {"model_type": "granitemoehybrid"}
    | GRANITE
    | {"layer_types": ["linear_attention", "linear_attention", "full_attention", "linear_attention"]},
    "granite-biases": {"model_type": "granitemoehybrid"}
    | GRANITE
    | {"mamba_proj_bias": True, "mamba_conv_bias": False, "tie_word_embeddings": True},
    "granite-dt-limits": {"model_type": "granitemoehybrid"} | GRANITE | {"time_step_limit": [0.001, 0.1]},
    "granite-dense": {"model_type": "granitemoehybrid"}
    | GRANITE
    | {"layer_types": ["attention"] * 4, "position_embedding_type": "rope"},
    "granite-mamba-only": {"model_type": "granitemoehybrid"} | GRANITE | {"layer_types": ["mamba"] * 4},
}

FULL_SHAPES: dict[str, dict] = {
    "gpt2": GPT2
    | {
        "model_type": "gpt2",
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
    },
    "qwen3-0.6b": ROTARY
    | {
        "model_type": "qwen3",
        "vocab_size": 151936,
        "hidden_size": 1024,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 3072,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "attention_bias": False,
        "tie_word_embeddings": True,
    },
    "granite-4.0-h-350m": GRANITE
    | {
        "model_type": "granitemoehybrid",
        "vocab_size": 100352,
        "hidden_size": 768,
        "num_hidden_layers": 32,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "shared_intermediate_size": 2048,
        "intermediate_size": 2048,
        "max_position_embeddings": 32768,
        "layer_types": ["attention" if i in (10, 13, 17, 27) else "mamba" for i in range(32)],
        "attention_multiplier": 0.015625,
        "mamba_n_heads": 48,
        "mamba_d_state": 128,
        "mamba_d_head": 32,
        "mamba_chunk_size": 256,
        "tie_word_embeddings": True,
    },
}


transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


@dataclass
class Pair:
    """The same weights twice: a transformers model, and the checkpoint that ours is loaded from."""

    reference: torch.nn.Module
    folder: Path
    config: dict

    @cached_property
    def ids(self) -> Tensor:
        """Two rows, longer than one chunk of the scan: (2, 150)."""
        return torch.randint(0, self.config["vocab_size"], (2, 150), generator=torch.Generator().manual_seed(1))

    @cached_property
    def logits(self) -> Tensor:
        """What the reference says of them: (2, 150, vocabulary)."""
        with torch.inference_mode():
            return self.reference(self.ids, use_cache=False).logits

    @property
    def checkpoint(self) -> Checkpoint:
        files = tuple(sorted(self.folder.glob("*.safetensors")))
        return Checkpoint(self.config, files, tokenizer_file=None, sha256="0" * 64, files={})

    def ours(self, dtype: torch.dtype = torch.float32, block: bool = False, decode: bool = False):
        return load_model(self.checkpoint, dtype=dtype, block=block, decode=decode)


def build(config: dict, folder: Path, seed: int = 0) -> Pair:
    """A random model of `config` (a config.json as a dict), saved to `folder`, attention in its eager form."""
    config = {key: value for key, value in config.items() if value is not None}
    hf_config = transformers.AutoConfig.for_model(**config)
    hf_config._attn_implementation = "eager"
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(hf_config, attn_implementation="eager").eval()
    randomise(model, seed)
    model.save_pretrained(folder)
    Path(folder, "config.json").write_text(json.dumps(config))
    return Pair(model, Path(folder), config)


@torch.no_grad()
def randomise(model: torch.nn.Module, seed: int) -> None:
    """Every parameter random and of realistic size, because ones and zeros hide faults."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        leaf = name.rsplit(".", 1)[-1]
        if name.endswith("A_log"):
            parameter.copy_(torch.empty(parameter.shape).uniform_(0.0, 2.5, generator=generator))
        elif name.endswith("dt_bias"):
            parameter.copy_(-3 + noise)
        elif "norm" in name or ".ln_" in name or leaf == "D":
            parameter.copy_(noise * 0.3 + (0.0 if leaf == "bias" else 1.0))
        elif leaf == "bias":
            parameter.copy_(noise * 0.3)
        elif "conv1d" in name:
            parameter.copy_(noise * 0.5)
        elif "wte" in name or "wpe" in name:  # rows about 4 long, as GPT-2's are
            parameter.copy_(noise * 4 * parameter.shape[-1] ** -0.5)
        elif "embed_tokens" in name or "lm_head" in name:
            parameter.copy_(noise * parameter.shape[-1] ** -0.5)
        else:
            fan_in = parameter.shape[0] if "h." in name and ".c_" in name else parameter.shape[-1]
            parameter.copy_(noise * fan_in**-0.5)
    model.tie_weights()
