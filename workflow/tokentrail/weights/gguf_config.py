"""A GGUF's metadata as the config.json that a Hugging Face checkpoint of the same model would have."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokentrail.errors import WeightsError

# What an architecture's name implies and its metadata does not repeat.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "mlp_bias": False},
    "qwen3": {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "use_sliding_window": False},
}
READ = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "vocab_size",
}
# Keys that change nothing at these values, and that some writers state.
HARMLESS = {"expert_count": 0, "expert_used_count": 0, "rope.scaling.type": "none", "attention.causal": True}


def build(metadata: dict[str, Any], tensor_names: set[str], name: str) -> dict[str, Any]:
    """The config of the model, with every number stated.

    Raises WeightsError if the architecture, or a key of it, is not supported, or if a needed key is missing.
    """
    architecture = metadata["general.architecture"]
    if architecture not in ARCHITECTURES:
        raise WeightsError(
            f"{name} has the architecture {architecture!r}, which is not supported; choose a GGUF of "
            f"{' or '.join(ARCHITECTURES)}, or safetensors"
        )
    prefix = f"{architecture}."
    stated = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    for key, value in stated.items():
        if key not in READ and HARMLESS.get(key, ...) != value:
            raise WeightsError(
                f"{name} states {prefix}{key} = {value}, which is not supported; choose a GGUF without it, "
                "or safetensors"
            )

    def get(key: str, default: Any = None) -> Any:
        value = stated.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            problem = "lacks" if value is None else f"states {value} for"
            raise WeightsError(f"{name} {problem} {prefix}{key}, which must be one number; choose another GGUF")
        return value

    hidden, heads = get("embedding_length"), get("attention.head_count")
    head_dim = get("attention.key_length", get("rope.dimension_count", hidden // heads))
    for key in ("rope.dimension_count", "attention.value_length"):
        if get(key, head_dim) != head_dim:
            raise WeightsError(
                f"{name} states {prefix}{key} = {stated[key]} for heads of {head_dim} channels, which is not "
                "supported; choose a GGUF where they are equal"
            )
    tokens = metadata.get("tokenizer.ggml.tokens") or []
    theta = shortest_decimal(get("rope.freq_base"))
    return ARCHITECTURES[architecture] | {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "dtype": "float32",
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": get("feed_forward_length"),
        "max_position_embeddings": get("context_length"),
        "num_attention_heads": heads,
        "num_hidden_layers": get("block_count"),
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
        "rms_norm_eps": shortest_decimal(get("attention.layer_norm_rms_epsilon")),
        # The older spelling and the newer one of the same number; readers know one or the other.
        "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
        "rope_theta": theta,
        # llama.cpp writes an output matrix only if it is not the embedding.
        "tie_word_embeddings": "output.weight" not in tensor_names,
        "vocab_size": get("vocab_size", len(tokens)),
    }


def shortest_decimal(value: float) -> float:
    """The shortest decimal that is the same float32.

    A GGUF stores 1e-05 as float32, which reads back as 9.999999747378752e-06. The model was trained with
    1e-05, and a pass in float64 must use that.
    """
    return float(str(np.float32(value)))
