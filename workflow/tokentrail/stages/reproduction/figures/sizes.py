"""Figures of sizes and work, which follow from shapes: the table `arithmetic`."""

from __future__ import annotations

import re
from typing import Any

from tokentrail.stages.reproduction.ledger import NO_MODEL, Figure
from tokentrail.stages.reproduction.run import NotRun, Run

ATTENTION = ("queries, keys and values", "attention output")
FFN = ("FFN up", "FFN down")
NORMS = ("norm before the mixer", "norm before the FFN")
SCORES = ("attention scores", "attention weights times values")
LAYER_PARTS = {
    "attention_qkv": ATTENTION[:1],
    "attention_output": ATTENTION[1:],
    "mlp_up": FFN[:1],
    "mlp_down": FFN[1:],
    "layer_norms": NORMS,
}
WORK = {
    "mlp": FFN,
    "attention_projection": ATTENTION,
    "attention_pair_product": SCORES,
    "qkv_projection": ATTENTION[:1],
    "output_projection": ATTENTION[1:],
    "score": SCORES[:1],
    "value_blend": SCORES[1:],
}
SHARES = {
    "mlp_weight_and_bias_parameter": FFN,
    "token_embedding_parameter": ("token table",),
    "token_table_parameter": ("token table",),
    "attention_weight_and_bias_parameter": ATTENTION,
    "attention_parameter": ATTENTION,
    "position_embedding_parameter": ("position table",),
    "mlp_plus_embedding_parameter": (*FFN, "token table"),
}
FORMS = {
    "8_bit_all_large_group_64": "8 bits, group 64",
    "4_bit_all_large_group_64": "4 bits, group 64",
    "4_bit_group_64_all_large": "4 bits, group 64",
    "4_bit_group_32_fp32_embeddings": "4 bits, group 32, tables float32",
    "4_bit_compute_fp32_embeddings_group_32": "4 bits, group 32, tables float32",
    "fp32": "float32",
}
OF_A_FIXED_MODEL = "gpt2"
"""The model that hypothetical caches and payloads stand beside; they are the same beside every model."""


def value(run: Run, model: str, quantity: str, *parts: str, **where: Any) -> int:
    chosen = {"subject": "model"} | where
    return sum(run.row("arithmetic", model, quantity=quantity, part=part, **chosen)["value"] for part in parts)


def of_one_layer(run: Run, figure: Figure, quantity: str, *parts: str, **where: Any) -> float:
    return value(run, figure.model, quantity, *parts, **where) / len(run.spec(figure.model).layers)


def share(run: Run, figure: Figure, name: str) -> float:
    return value(run, figure.model, "parameters", *SHARES[name]) / value(run, figure.model, "parameters", "all")


def numbers(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", text.replace(",", ""))]


def cached(figure: Figure) -> dict[str, int]:
    """`batch 8, context 64`, `100 slots, 1024 tokens`, `16-token input`, `1024 tokens`."""
    found = numbers(figure.input)
    rows, tokens = found if len(found) == 2 else (1, found[0])
    return {"rows": rows, "tokens": tokens}


def cache(run: Run, figure: Figure) -> int:
    return value(run, figure.model, "cache", "keys and values", **cached(figure))


def per_token(run: Run, figure: Figure, rows: int = 1) -> int:
    return value(run, figure.model, "cache", "keys and values", rows=rows, tokens=1)


def hypothetical(run: Run, heads: int, tokens: int) -> int:
    """Of a cache that the configuration describes: 32 layers, heads of 128, float16."""
    rows = run.rows("arithmetic", first(run), quantity="cache", rows=1, tokens=tokens)
    formula = f"2*32*{heads}*128*{tokens}*2"
    found = [row["value"] for row in rows.to_dicts() if row["subject"] != "model" and row["formula"] == formula]
    if not found:
        raise NotRun(f"stages.arithmetic.caches has no cache of 32 layers with {heads} key/value heads of 128")
    return found[0]


def seven_billion(run: Run, part: str) -> int:
    rows = run.rows("arithmetic", first(run), quantity="payload", part=part)
    found = [row["value"] for row in rows.to_dicts() if row["formula"].startswith("7000000000*4/8") or part == "scales"]
    if len(found) != 1:
        raise NotRun("stages.arithmetic.payloads has not the one payload of 7,000,000,000 parameters")
    return found[0]


def first(run: Run) -> str:
    return OF_A_FIXED_MODEL if OF_A_FIXED_MODEL in run.specs else run.models[0]


def heads_of(figure: Figure) -> int:
    return 8 if figure.input.startswith("8 KV") else 32


def payload(run: Run, figure: Figure, form: str) -> int:
    if form not in FORMS:
        raise NotRun(f"no payload is called {form}")
    return value(run, first(run) if figure.model == NO_MODEL else figure.model, "payload", FORMS[form])


def activation(run: Run, figure: Figure) -> int:
    return value(run, figure.model, "activation", "FFN, one layer", **cached(figure))


def state_growth(run: Run, figure: Figure, later: str, earlier: str) -> float:
    sizes = [value(run, figure.model, "cache", "states", rows=1, tokens=int(tokens)) for tokens in (later, earlier)]
    return sizes[0] / sizes[1]


def intensity(run: Run, figure: Figure) -> float:
    """Operations of the dense layers for each byte of the weights, which are read once for all rows."""
    (rows,) = numbers(figure.input)
    return 2 * rows * value(run, figure.model, "parameters", "all") / payload(run, figure, "fp32")


FIGURES = {
    r"parameter_count(?:_rounded|_from_shapes)?": lambda run, f: value(run, f.model, "parameters", "all"),
    r"twelve_block_parameter_count": lambda run, f: value(run, f.model, "parameters", *ATTENTION, *FFN, *NORMS),
    r"block_parameter_count": lambda run, f: of_one_layer(run, f, "parameters", *ATTENTION, *FFN, *NORMS),
    r"block_(attention_qkv|attention_output|mlp_up|mlp_down|layer_norms)_parameter_count": (
        lambda run, f, name: of_one_layer(run, f, "parameters", *LAYER_PARTS[name])
    ),
    r"(?:token_embedding|token_table|embedding)_parameter_(?:count|product)|extra_parameters_if_untied": (
        lambda run, f: value(run, f.model, "parameters", "token table")
    ),
    r"(?:position_embedding|position_table)_parameter_(?:count|product)": (
        lambda run, f: value(run, f.model, "parameters", "position table")
    ),
    r"mlp_weight_and_bias_parameter_count": lambda run, f: value(run, f.model, "parameters", *FFN),
    r"attention_weight_and_bias_parameter_count": lambda run, f: value(run, f.model, "parameters", *ATTENTION),
    r"final_layer_norm_parameter_count": lambda run, f: value(run, f.model, "parameters", "last norm"),
    rf"({'|'.join(SHARES)})_share(?:_rounded|_as_fraction)?": share,
    r"mlp_over_attention_parameter_ratio": lambda run, f: (
        value(run, f.model, "parameters", *FFN) / value(run, f.model, "parameters", *ATTENTION)
    ),
    rf"({'|'.join(WORK)})_operations(?:_one_block)?": lambda run, f, name: of_one_layer(
        run, f, "flops", *WORK[name], rows=1, tokens=5
    ),
    r"operations_per_sequence_row": lambda run, f: 2 * value(run, f.model, "parameters", "all"),
    r"fp32_weight_bytes": lambda run, f: payload(run, f, "fp32"),
    r"arithmetic_intensity": intensity,
    r"mlp_wide_activation_fp32_(?:bytes|mib)": activation,
    r"embedding_rows_fp32_bytes": lambda run, f: value(run, f.model, "activation", "stream", rows=1, tokens=5),
    r"cache_bytes_per_token_fp32": per_token,
    r"cache_bytes_per_token_fp16": lambda run, f: per_token(run, f) / 2,
    r"cache_bytes(?:_fp32)?|cache_mib_fp32|reserved_cache_mib_fp32": cache,
    r"cache_bytes_over_per_token_bytes": lambda run, f: cache(run, f) / per_token(run, f),
    r"cache_bytes_per_token": lambda run, f: hypothetical(run, heads_of(f), 1),
    r"cache_gib": lambda run, f: hypothetical(run, 32, numbers(f.input)[-1]),
    r"cache_size_ratio": lambda run, f: hypothetical(run, 8, 1) / hypothetical(run, 32, 1),
    r"state_size_ratio_token_(\d+)_vs_(\d+)": state_growth,
    r"payload_(8_bit\w*|4_bit\w*|fp32)": payload,
    r"ratio_(8_bit\w*|4_bit\w*|fp32)": lambda run, f, form: payload(run, f, "fp32") / payload(run, f, form),
    r"four_bit_code_payload": lambda run, f: seven_billion(run, "codes"),
    r"fp16_scale_payload": lambda run, f: seven_billion(run, "scales"),
    r"four_bit_plus_scales_payload": lambda run, f: seven_billion(run, "codes and scales"),
    r"fp16_payload": lambda run, f: seven_billion(run, "codes") * 4,
    r"fp32_payload": lambda run, f: payload(run, f, "fp32") if f.unit == "MiB" else fp32_payload(run, f),
}


def fp32_payload(run: Run, figure: Figure) -> int:
    """Of 7 billion parameters, or of one FFN matrix without its bias."""
    if figure.model == NO_MODEL:
        return seven_billion(run, "codes") * 8
    spec = run.spec(figure.model)
    return 4 * spec.width * spec.layers[0].ffn.width
