"""Every published figure that needs no weights, from the code that runs: shapes of a pass without numbers in it,
sizes and work by arithmetic, rotation, and the worked examples."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ledger
import polars as pl
import pytest
import torch
from inputs import CONFIG, PARAGRAPH, REPEATS, TEXTS
from random_models import FULL_SHAPES
from test_published_tokens import tokenizer
from tokentrail import examples
from tokentrail.forward import spec as specs
from tokentrail.forward.assemble import assemble
from tokentrail.forward.cache import KeyValues
from tokentrail.forward.cells.ffn import FfnWeights, ffn
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import Model, forward, last
from tokentrail.forward.place import Place
from tokentrail.forward.shapes import shapes
from tokentrail.forward.taps import NO_TAP, SITES, Record
from tokentrail.measure.answers import entropy_bits, log_probabilities
from tokentrail.quantize.parts import quantizable
from tokentrail.stages.arithmetic import measure as arithmetic
from tokentrail.stages.block import measure as block
from tokentrail.stages.positions import measure as positions
from tokentrail.stages.positions.settings import PositionsStage

CONFIGS = {
    "gpt2": FULL_SHAPES["gpt2"],
    "qwen3-0.6b-base": FULL_SHAPES["qwen3-0.6b"],
    "granite-4.0-h-350m-base": FULL_SHAPES["granite-4.0-h-350m"],
}
MIB = 2**20
Measure = Callable[[dict[str, str]], Any]


def spec(row) -> specs.Spec:
    return read_spec(CONFIGS[row["model"]])


def attention(row) -> specs.Attention:
    return next(layer.mixer for layer in spec(row).layers if isinstance(layer.mixer, specs.Attention))


def kinds(row) -> list[str]:
    return [specs.kind_of(layer.mixer) for layer in spec(row).layers]


def number(row) -> int:
    """The number that the name of the quantity ends in."""
    return int(row["quantity"].rpartition("_")[2])


def yes(condition: bool) -> str:
    return "yes" if condition else "no"


# a pass in which tensors have shapes and no numbers


@functools.cache
def empty_model(model: str) -> Model:
    own = read_spec(CONFIGS[model])
    sizes = shapes(own)
    return assemble(own, lambda name: torch.empty(sizes[name], device="meta") if name in sizes else None)


@functools.cache
def passed(model: str, text: str) -> dict[tuple[str, int], list[int]]:
    """The shape of every site after one pass over a text, the last position alone read; in the order of the pass."""
    ids = torch.empty(1, len(tokenizer(model).encode(TEXTS[text])), dtype=torch.int64, device="meta")
    record = Record(*SITES, keep=lambda tensor: list(tensor.shape))
    forward(empty_model(model), ids, tap=record, read=last(ids))
    return record.seen


def at(row, site: str, layer: int = 0) -> list[int]:
    """Shape at a site, for the one row of the batch."""
    return passed(row["model"], row["input"])[site, layer][1:]


def logits(row) -> list[int]:
    return at(row, "logits", len(spec(row).layers))


def steps(model: str, text: str) -> dict[str, list[int]]:
    """The shapes of the first layer's steps, by name."""
    seen = passed(model, text)
    words = {(site, 0): name for site, name in empty_model(model).spec.layers[0].sites.items()}
    words |= {(site, -1): name for site, name in block.EMBEDDING.items()}
    named = {name: seen[place] for place, name in words.items() if place in seen}
    return {"input ids": seen["token_rows", -1][:2]} | named


STEPS = {
    "shape_input_ids": "input ids",
    "shape_token_rows": "token rows",
    "shape_position_rows": "position rows",
    "shape_initial_residual": "stream entering",
    "shape_combined_qkv": "q, k and v together",
    "shape_query_heads": "queries by head",
    "shape_key_heads": "keys by head",
    "shape_value_heads": "values by head",
    "shape_attention_weights": "attention weights",
    "shape_attention_update": "attention update",
    "shape_after_attention": "stream after the mixer",
    "shape_mlp_wide": "FFN widened",
    "shape_mlp_activated": "FFN activated",
    "shape_mlp_update": "FFN update",
    "shape_block_output": "stream leaving",
}


def step(row, name: str) -> list[int]:
    return steps(row["model"], row["input"])[name]


# sizes and work


HYPOTHETICAL = {
    "caches": {
        name: {"layers": 32, "kv_heads": kv, "head_dim": 128, "bytes_per_number": 2, "tokens": [1, 2048, 8192]}
        for name, kv in (("full", 32), ("grouped", 8))
    },
    "payloads": {"7B": {"parameters": 7_000_000_000, "bits": 4, "group": 64}},
}
SIZES = {"rows": [1, 8, 100], "tokens": [1, 5, 16, 18, 64, 1000, 1024, 18000]}


@functools.cache
def arithmetic_of(model: str) -> pl.DataFrame:
    return arithmetic.measure(SimpleNamespace(config=CONFIGS[model]), {"model": model} | SIZES | HYPOTHETICAL)


def sized(row, quantity: str, part: str, rows: int = 0, tokens: int = 0, subject: str = "model") -> int:
    """The value of one row of the table."""
    model = row["model"] if row["model"] in CONFIGS else "gpt2"
    found = arithmetic_of(model).filter(quantity=quantity, part=part, rows=rows, tokens=tokens, subject=subject)
    (value,) = found["value"].to_list()
    return value


def parameters(row, *parts: str) -> int:
    return sum(sized(row, "parameters", part) for part in parts)


def of_one_layer(row, quantity: str, *parts: str, rows: int = 0, tokens: int = 0) -> int:
    layers = len(spec(row).layers)
    total = sum(sized(row, quantity, part, rows, tokens) for part in parts)
    assert total % layers == 0
    return total // layers


ATTENTION = ("queries, keys and values", "attention output")
FFN = ("FFN up", "FFN down")
NORMS = ("norm before the mixer", "norm before the FFN")


def share(row, *parts: str) -> float:
    return parameters(row, *parts) / parameters(row, "all")


def cache_bytes(row, rows: int, tokens: int) -> int:
    return sized(row, "cache", "keys and values", rows, tokens)


def hypothetical(name: str, tokens: int) -> int:
    return sized({"model": "none"}, "cache", "keys and values", 1, tokens, name)


def payload(row, form: str) -> float:
    model = row if row["model"] == "gpt2" else row | {"model": "gpt2"}
    return sized(model, "payload", form)


FORMS = {
    "payload_fp32": "float32",
    "fp32_payload": "float32",
    "payload_8_bit_all_large_group_64": "8 bits, group 64",
    "payload_4_bit_all_large_group_64": "4 bits, group 64",
    "payload_4_bit_group_64_all_large": "4 bits, group 64",
    "payload_4_bit_group_32_fp32_embeddings": "4 bits, group 32, tables float32",
    "payload_4_bit_compute_fp32_embeddings_group_32": "4 bits, group 32, tables float32",
}
RATIOS = {name.replace("payload", "ratio"): form for name, form in FORMS.items()}


def flops(row, *parts: str) -> int:
    """Of one layer, for the five tokens of the prompt."""
    return of_one_layer(row, "flops", *parts, rows=1, tokens=5)


def matrix_names(part: str, model: str = "gpt2") -> list[str]:
    return [name for name in quantizable(read_spec(CONFIGS[model])) if part in name]


@functools.cache
def mamba2_pattern() -> torch.Tensor:
    """Who reads what through a random Mamba2 layer's recurrence: (heads, 18, 18)."""
    from tokentrail.forward.cells.mamba2 import unrolled

    draw = functools.partial(torch.randn, generator=torch.Generator().manual_seed(0))
    return unrolled(draw(1, 18, 4).exp() * 0.1, -torch.ones(4), draw(1, 18, 1, 8), draw(1, 18, 1, 8))[0]


def before(row, one: str, other: str) -> bool:
    """Whether, in a Mamba2 layer, one site comes before another."""
    order = list(passed(row["model"], "alice"))
    layer = kinds(row).index("mamba2")
    return order.index((one, layer)) < order.index((other, layer))


# rotation


@functools.cache
def rotations() -> dict[str, float]:
    settings = PositionsStage().model_dump()
    rows = positions.rotations(specs.Rope(1e6), 128, 128, 1, settings)
    return {
        f"{row.get('query_position')}_{row.get('key_position')}" if row["probe"] == "rotation" else row["probe"]: row
        for row in rows
    }


def score(name: str) -> float:
    return rotations()[name]["score"]


# worked examples


X = [[1, 0], [0, 1], [1, 1]]
Q, K, V = (examples.matmul(X, w) for w in ([[1, 0], [1, 1]], [[1, 0], [0, 1]], [[1, 2], [2, -1]]))
WEIGHTS = examples.causal_weights(Q, K)
OUT = examples.matmul(WEIGHTS, V)
PRODUCT = [[1, 2, 3], [4, 5, 6]], [[1, 0], [0, 1], [1, 1]]
BIG = [1000, 1001, 1002]
NORMED = examples.layer_norm([1, 2, 3], 1e-5)
SOME = [0.3, -1.2, 2.0, 0.7]


def overflows() -> bool:
    try:
        examples.naive_softmax(BIG)
    except OverflowError:
        return True
    return False


def collapse() -> float:
    """Two matrices in a row are one: (xA)B against x(AB)."""
    x, a, b = ([[0.5, -1.0]], [[1.0, 2.0], [3.0, -4.0]], [[0.25, 1.0], [2.0, -0.5]])
    one, other = (
        examples.matmul(examples.matmul(x, a), b)[0],
        examples.matmul(x, examples.matmul(a, b))[0],
    )
    return max(abs(p - q) for p, q in zip(one, other, strict=True))


def printed(name: str) -> float:
    """Another figure of the ledger."""
    return float(ledger.value(ledger.ROWS[name]))


def rise(before: str, after: str) -> float:
    return examples.percent_change(*(float(part) for part in (before, after)))


def two(row, separator: str) -> tuple[float, float]:
    """The two printed numbers that an input is made of, for example `17.66 / 10.06`."""
    one, other = row["input"].split(separator)
    return float(one), float(other)


def untied() -> dict[str, Any]:
    """GPT-2's shapes with an output table of its own, which its family does not have."""
    return CONFIGS["qwen3-0.6b-base"] | {"vocab_size": 50257, "hidden_size": 768, "tie_word_embeddings": False}


def cached(row) -> tuple[int, int]:
    """Rows and tokens: `batch 8, context 64`, or `1024 tokens`."""
    numbers = [int(part) for part in row["input"].replace(",", "").split() if part.isdigit()]
    return (1, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])


def ffn_activation_bytes(row) -> int:
    """`batch 8, 1000 tokens`"""
    return sized(row, "activation", "FFN, one layer", *cached(row))


def formula_holds(row, names: dict[str, Any], expected: Any) -> str:
    """The printed formula if it gives what the code gives, and what it gives if not."""
    given = eval(row["value"], {"__builtins__": {}} | names)
    return row["value"] if math.isclose(given, expected, rel_tol=1e-6) else f"{row['value']} = {given}, not {expected}"


def cell_gelu(x: float) -> float:
    """The cell's own activation, between two unit matrices."""
    one = Linear(torch.ones(1, 1, dtype=torch.float64))
    y = ffn(
        torch.tensor([[[x]]], dtype=torch.float64),
        FfnWeights(one, one),
        specs.Ffn("gelu_tanh", False, 1, False),
        None,
        None,
        0,
        NO_TAP,
    )[0]
    return y.item()


def activation(row) -> str:
    """The name printed for the activation, if the cell of the model's FFN is that."""
    kind = spec(row).layers[0].ffn.kind
    tanh = math.isclose(cell_gelu(0.7), examples.gelu(0.7), rel_tol=1e-9)
    names = {"swiglu": {"swiglu"}, "gelu": {"gelu", "gelu_tanh", "gelu_new"} if tanh else {"gelu"}}[kind]
    return row["value"] if row["value"] in names else kind


def capitalised_inside_sentences(text: str) -> list[str]:
    """Words with a capital that does not open a sentence, as a person's name would have."""
    return [word for line in text.split(". ") for word in line.split()[1:] if word[0].isupper()]


CENSUS: dict[str, Measure] = {
    "layer_count": lambda row: len(spec(row).layers),
    "blocks_after_first": lambda row: len(spec(row).layers) - 1,
    "mamba2_layer_count": lambda row: kinds(row).count("mamba2"),
    "attention_layer_count": lambda row: kinds(row).count("attention"),
    "single_attention_switches_tried": lambda row: kinds(row | {"model": "qwen3-0.6b-base"}).count("attention"),
    "layer_kind_layer": lambda row: kinds(row)[number(row)],
    "mamba2_layer_count_from_layer": lambda row: kinds(row)[number(row) :].count("mamba2"),
    "attention_layer_count_from_layer": lambda row: kinds(row)[number(row) :].count("attention"),
    "output_projection_tied_to_embedding": lambda row: yes(spec(row).tied),
    "logit_divisor": lambda row: spec(row).logit_divisor,
    "residual_multiplier": lambda row: spec(row).layers[0].sublayers[0].scale,
    "embedding_multiplier": lambda row: spec(row).embedding_scale,
    "model_width": lambda row: spec(row).width,
    "vocab_size": lambda row: spec(row).vocabulary,
    "head_count": lambda row: attention(row).heads,
    "query_head_count": lambda row: attention(row).heads,
    "total_head_count": lambda row: attention(row).heads * kinds(row).count("attention"),
    "kv_head_count": lambda row: attention(row).kv_heads,
    "key_head_count": lambda row: passed(row["model"], "cat-sat")["k", 0][1],
    "value_head_count": lambda row: attention(row).kv_heads,
    "query_heads_per_kv_head": lambda row: attention(row).heads / attention(row).kv_heads,
    "head_dim": lambda row: attention(row).head_dim,
    "head_count_times_head_dim": lambda row: attention(row).heads * attention(row).head_dim,
    "attention_scale": lambda row: attention(row).scale,
    "combined_qkv_width": lambda row: shapes(spec(row))["layers.0.mixer.qkv.weight"][0],
    "ffn_width": lambda row: spec(row).layers[0].ffn.width,
    "ffn_activation": activation,
    "norm_kind": lambda row: spec(row).norm.kind,
    "layer_norm_epsilon": lambda row: spec(row).norm.eps,
    "layer_norm_scale_count": lambda row: shapes(spec(row))["layers.0.mixer_norm.weight"][0],
    "layer_norm_offset_count": lambda row: shapes(spec(row))["layers.0.mixer_norm.bias"][0],
    "layer_norm_variance_kind": lambda row: (
        "population"
        if torch.allclose(
            torch.nn.functional.layer_norm(torch.tensor([1.0, 2.0, 3.0]), (3,), eps=1e-5), torch.tensor(NORMED)
        )
        else "sample"
    ),
    "position_table_rows": lambda row: spec(row).learned_positions,
    "has_position_table": lambda row: yes(spec(row).learned_positions is not None),
    "position_row_added_to_last_token": lambda row: (
        Place(torch.zeros(1, len(tokenizer("gpt2").encode(TEXTS["alice"]))), None, None).positions[0, -1].item()
    ),
    "rope_theta": lambda row: attention(row).rope.theta,
    "position_embedding_type": lambda row: "nope" if attention(row).rope is None else "rope",
    "kv_memory_ratio_vs_full_heads": lambda row: (
        arithmetic.kv_bytes(1, attention(row).kv_heads, 128, 1) / arithmetic.kv_bytes(1, attention(row).heads, 128, 1)
    ),
    "parameter_count": lambda row: parameters(row, "all"),
    "parameter_count_rounded": lambda row: parameters(row, "all"),
    "parameter_count_from_shapes": lambda row: sum(map(math.prod, shapes(spec(row)).values())),
    "twelve_block_parameter_count": lambda row: parameters(row, *ATTENTION, *FFN, *NORMS),
    "block_parameter_count": lambda row: of_one_layer(row, "parameters", *ATTENTION, *FFN, *NORMS),
    "embedding_parameter_count": lambda row: parameters(row, "token table"),
    "token_embedding_parameter_count": lambda row: parameters(row, "token table"),
    "token_table_parameter_count": lambda row: parameters(row, "token table"),
    "token_table_parameter_product": lambda row: math.prod(shapes(spec(row))["tokens"]),
    "extra_parameters_if_untied": lambda row: math.prod(shapes(read_spec(untied()))["head.weight"]),
    "position_embedding_parameter_count": lambda row: parameters(row, "position table"),
    "position_table_parameter_product": lambda row: math.prod(shapes(spec(row))["positions"]),
    "mlp_weight_and_bias_parameter_count": lambda row: parameters(row, *FFN),
    "attention_weight_and_bias_parameter_count": lambda row: parameters(row, *ATTENTION),
    "final_layer_norm_parameter_count": lambda row: parameters(row, "last norm"),
    "block_attention_qkv_parameter_count": lambda row: of_one_layer(row, "parameters", ATTENTION[0]),
    "block_attention_output_parameter_count": lambda row: of_one_layer(row, "parameters", ATTENTION[1]),
    "block_mlp_up_parameter_count": lambda row: of_one_layer(row, "parameters", FFN[0]),
    "block_mlp_down_parameter_count": lambda row: of_one_layer(row, "parameters", FFN[1]),
    "block_layer_norms_parameter_count": lambda row: of_one_layer(row, "parameters", *NORMS),
    "mlp_weight_and_bias_parameter_share": lambda row: 100 * share(row, *FFN),
    "token_embedding_parameter_share": lambda row: 100 * share(row, "token table"),
    "token_table_parameter_share": lambda row: 100 * share(row, "token table"),
    "token_embedding_parameter_share_rounded": lambda row: 100 * share(row, "token table"),
    "attention_weight_and_bias_parameter_share": lambda row: 100 * share(row, *ATTENTION),
    "position_embedding_parameter_share": lambda row: 100 * share(row, "position table"),
    "mlp_over_attention_parameter_ratio": lambda row: parameters(row, *FFN) / parameters(row, *ATTENTION),
    "mlp_plus_embedding_parameter_share": lambda row: share(row, *FFN, "token table"),
    "attention_parameter_share_as_fraction": lambda row: share(row, *ATTENTION),
    "names_tried": lambda row: len(CONFIG["stages"]["name_swaps"]["sets"]["five-names"]["names"]),
    "cases_total": lambda row: len(CONFIG["stages"]["name_swaps"]["sets"]["five-names"]["names"]) * len(CONFIGS),
    "filler_repeat_counts": lambda row: CONFIG["stages"]["filler"]["repeats"],
    "count_of_word_book": lambda row: PARAGRAPH.count("book"),
    "count_of_person_names": lambda row: len(capitalised_inside_sentences(PARAGRAPH)),
    "prompt_trailing_whitespace": lambda row: len(TEXTS["alice"]) - len(TEXTS["alice"].rstrip()),
    "model_of_both_mixing_tables": lambda row: next(m for m in CONFIGS if len(set(kinds({"model": m}))) == 2),
    "mixing_table_attention_layer": lambda row: max(i for i, kind in enumerate(kinds(row)) if kind == "attention"),
    "mixing_table_mamba2_layer": lambda row: kinds(row).index("mamba2", kinds(row).index("attention", 27)),
    "state_updates_seen_position": lambda row: mamba2_pattern()[0, number(row)].count_nonzero().item(),
    "state_size_ratio_token_18000_vs_18": lambda row: (
        sized(row, "cache", "states", 1, 18000) / sized(row, "cache", "states", 1, 18)
    ),
    "convolution_before_scan_and_gate_after": lambda row: yes(
        before(row, "conv_out", "ssm_y") and before(row, "ssm_y", "z")
    ),
}
SHAPES: dict[str, Measure] = {
    **{quantity: lambda row, name=name: step(row, name) for quantity, name in STEPS.items()},
    "embedding_output_shape": lambda row: at(row, "embed", -1),
    "embedding_row_length": lambda row: shapes(spec(row))["tokens"][1],
    "token_table_shape": lambda row: shapes(spec(row))["tokens"],
    "embedding_rows_fp32_bytes": lambda row: math.prod(at(row, "embed", -1)) * arithmetic.FLOAT32,
    "attention_weights_shape_per_layer": lambda row: at(row, "pattern"),
    "mlp_input_shape": lambda row: at(row, "ffn_in"),
    "mlp_wide_shape": lambda row: at(row, "ffn_act"),
    "unembed_input_shape": lambda row: at(row, "final_norm", len(spec(row).layers)),
    "logits_shape": logits,
    "tokens_outside_top5": lambda row: logits(row)[-1] - 5,
    "tokens_other_than_target": lambda row: logits(row)[-1] - 1,
    "logits_other_than_a_pair": lambda row: logits(row)[-1] - 2,
    "numbers_reindexed_by_head_reshape": lambda row: math.prod(step(row, "queries by head")),
    "score_grid_shape_per_head": lambda row: step(row, "scores")[2:],
    "value_blend_shape_per_head": lambda row: step(row, "weighted values")[2:],
    "first_cached_key_shape": lambda row: [1, attention(row).kv_heads, 16, attention(row).head_dim],
    "weight_shape": lambda row: shapes(spec(row))["layers.0.ffn.up.weight"][::-1],  # stored (in, out)
    "weight_count": lambda row: math.prod(shapes(spec(row))["layers.0.ffn.up.weight"]),
}
WORK: dict[str, Measure] = {
    "mlp_operations_one_block": lambda row: flops(row, *FFN),
    "attention_projection_operations_one_block": lambda row: flops(row, *ATTENTION),
    "attention_pair_product_operations_one_block": lambda row: flops(
        row, "attention scores", "attention weights times values"
    ),
    "qkv_projection_operations": lambda row: flops(row, ATTENTION[0]),
    "output_projection_operations": lambda row: flops(row, ATTENTION[1]),
    "score_operations": lambda row: flops(row, "attention scores"),
    "value_blend_operations": lambda row: flops(row, "attention weights times values"),
    "matmul_operation_formula": lambda row: formula_holds(
        row, {"M": 3, "K": 5, "N": 7}, examples.matmul_operations(3, 5, 7)
    ),
    "matmul_output_count_formula": lambda row: formula_holds(
        row, {"M": 2, "N": 2}, sum(map(len, examples.matmul(*PRODUCT)))
    ),
    "mlp_operation_formula": lambda row: formula_holds(row, {"T": 5}, flops(row, *FFN)),
    "operations_per_parameter": lambda row: examples.matmul_operations(1, 768, 3072) / (768 * 3072),
    "operations_per_sequence_row": lambda row: examples.matmul_operations(1, 1, parameters(row, "all")),
    "fp32_weight_bytes": lambda row: payload(row, "float32"),
    "arithmetic_intensity": lambda row: (
        examples.matmul_operations(int(row["input"].split()[1]), 1, parameters(row, "all")) / payload(row, "float32")
    ),
    "mlp_wide_activation_fp32_bytes": lambda row: ffn_activation_bytes(row),
    "mlp_wide_activation_fp32_mib": lambda row: ffn_activation_bytes(row) / MIB,
    "cache_bytes_per_token_fp32": lambda row: cache_bytes(row, 1, 1),
    "cache_bytes_per_token_fp16": lambda row: arithmetic.kv_bytes(
        len(spec(row).layers), attention(row).kv_heads, attention(row).head_dim, 1, size=arithmetic.FLOAT16
    ),
    "cache_bytes": lambda row: cache_bytes(row, 1, 16),
    "cache_bytes_over_per_token_bytes": lambda row: cache_bytes(row, 1, 16) / cache_bytes(row, 1, 1),
    "cache_tensors_per_layer": lambda row: len(KeyValues._fields),
    "cache_mib_fp32": lambda row: cache_bytes(row, *cached(row)) / MIB,
    "cache_bytes_fp32": lambda row: cache_bytes(row, *cached(row)),
    "reserved_cache_mib_fp32": lambda row: cache_bytes(row, 100, 1024) / MIB,
    "cache_bytes_per_token": lambda row: hypothetical("grouped" if "instead" in row["input"] else "full", 1),
    "cache_gib": lambda row: hypothetical("full", 2048 if "2048" in row["input"] else 8192) / 2**30,
    "cache_size_ratio": lambda row: hypothetical("grouped", 1) / hypothetical("full", 1),
    "kv_heads_per_layer": lambda row: specs.Attention(8, 1, 64, 0.125, None, None, False, False).kv_heads,
}
ROTATION: dict[str, Measure] = {
    "rope_score_without_rotation": lambda row: score("unrotated"),
    "rope_score_17_5": lambda row: score("17_5"),
    "rope_score_112_100": lambda row: score("112_100"),
    "rope_score_17_16": lambda row: score("17_16"),
    "position_gap_17_5": lambda row: rotations()["17_5"]["offset"],
    "position_gap_112_100": lambda row: rotations()["112_100"]["offset"],
    "abs_difference_score_17_5_vs_112_100": lambda row: abs(score("17_5") - score("112_100")),
}
EXAMPLES: dict[str, Measure] = {
    "training_pair_count": lambda row: len(examples.training_pairs([41, 82, 17, 63])),
    "prefix_target_pairs": lambda row: examples.training_pairs([41, 82, 17, 63]),
    "shifted_inputs": lambda row: examples.training_pairs([41, 82, 17, 63])[-1][0],
    "shifted_targets": lambda row: [target for _, target in examples.training_pairs([41, 82, 17, 63])],
    "cross_entropy": lambda row: examples.cross_entropy([0, 0, 1, 0], [1.2, 0.4, 2.7, 3.1]),
    "nll_of_product_minus_sum_of_nll": lambda row: (
        examples.negative_log_likelihood(0.3 * 0.7)
        - examples.negative_log_likelihood(0.3)
        - examples.negative_log_likelihood(0.7)
    ),
    "negative_natural_log": lambda row: examples.negative_log_likelihood(float(row["input"][5:-1])),
    "entropy_bits": lambda row: examples.entropy_bits([0.5, 0.5]),
    "uniform_entropy_bits": lambda row: entropy_bits(
        log_probabilities(torch.zeros(read_spec(CONFIGS["gpt2"]).vocabulary))
    ),
    "change_in_probability_ratio": lambda row: (
        examples.odds([x + 100 for x in SOME], 2, 1) / examples.odds(SOME, 2, 1) - 1
    ),
    "odds_ratio_exponent": lambda row: round(
        math.log(examples.odds([2 * x for x in SOME], 2, 1)) / math.log(examples.odds(SOME, 2, 1)), 12
    ),
    "exp_of_printed_logit_gap": lambda row: examples.odds([printed("gpt2-france-logit-gap"), 0.0], 0, 1),
    "probability_ratio_from_printed_values": lambda row: (
        printed("gpt2-france-exact-prob-the") / printed("gpt2-france-exact-prob-paris")
    ),
    "argmax_unchanged_by_positive_temperature": lambda row: yes(
        examples.softmax([x / 2 for x in SOME]).index(max(examples.softmax([x / 2 for x in SOME])))
        == SOME.index(max(SOME))
    ),
    "dot_product": lambda row: examples.dot([1, 2, 3], [1, 0, 1]),
    "matmul_result": lambda row: examples.matmul(*PRODUCT),
    "matmul_entry_0_0": lambda row: examples.matmul(*PRODUCT)[0][0],
    "matmul_entry_0_1": lambda row: examples.matmul(*PRODUCT)[0][1],
    "matmul_result_shape": lambda row: [len(examples.matmul(*PRODUCT)), len(examples.matmul(*PRODUCT)[0])],
    "stable_softmax_entry": lambda row: examples.softmax(BIG)[number(row)],
    "stable_softmax_sum": lambda row: sum(examples.softmax(BIG)),
    "naive_exp_overflows": lambda row: yes(overflows()),
    "shifted_exponents": lambda row: examples.shifted(BIG),
    "x": lambda row: X,
    "q": lambda row: Q,
    "k": lambda row: K,
    "v": lambda row: V,
    "unscaled_scores": lambda row: examples.matmul(Q, list(zip(*K, strict=True))),
    "weights_row": lambda row: WEIGHTS[number(row)],
    "weights_row_2_entry": lambda row: WEIGHTS[2][number(row)],
    "weighted_v_row_2_entry": lambda row: OUT[2][number(row)],
    "row_sums": lambda row: [sum(weights) for weights in WEIGHTS],
    "max_weight_above_diagonal": lambda row: max(WEIGHTS[i][j] for i in range(3) for j in range(i + 1, 3)),
    "head_width": lambda row: len(Q[0]),
    "dot_product_variance": lambda row: sum(1.0 * 1.0 for _ in range(attention({"model": "gpt2"}).head_dim)),
    "layer_norm_mean": lambda row: examples.mean_and_deviation([1, 2, 3])[0],
    "mean_squared_deviation": lambda row: examples.mean_and_deviation([1, 2, 3])[1],
    "centered_row": lambda row: [x - examples.mean_and_deviation([1, 2, 3])[0] for x in (1, 2, 3)],
    "layer_norm_output": lambda row: NORMED[number(row)],
    "layer_norm_divisor": lambda row: 1 / NORMED[2],
    "residual_sum": lambda row: examples.add([1, 2, 3], [0.25, -0.5, 1]),
    "gelu_parenthesized_factor_limit": lambda row: examples.gelu_factor(-50 if "negative" in row["input"] else 50),
    "gelu_cubic_coefficient": lambda row: cubic_coefficient(),
    "gelu_formula": lambda row: formula_holds(
        row, {"x": 0.7, "sqrt": math.sqrt, "tanh": math.tanh, "pi": math.pi}, cell_gelu(0.7)
    ),
    "max_abs_difference": lambda row: collapse(),
    "tokens_per_word": lambda row: float(ledger.value({"value": row["input"]})),
    "utf8_byte_count": lambda row: len(row["input"].encode()),
}
CODES: dict[str, Measure] = {
    "fp32_payload": lambda row: fp32_payload(row),
    "theoretical_packed_payload": lambda row: arithmetic.payload_bytes(768 * 3072, 4, 64) / 1024,
    "group_count": lambda row: arithmetic.scale_count(768 * 3072, 64),
    "default_group_size": lambda row: arithmetic.PAYLOADS["4 bits, group 64"][2],
    "four_bit_code_min": lambda row: -(2 ** (arithmetic.PAYLOADS["4 bits, group 64"][0] - 1)),
    "four_bit_code_max": lambda row: 2 ** (arithmetic.PAYLOADS["4 bits, group 64"][0] - 1) - 1,
    "reconstructed_weight": lambda row: examples.dot([2], [0.04576]),
    "packed_code_bytes": lambda row: arithmetic.payload_bytes(64, 4),
    "scale_bytes": lambda row: arithmetic.payload_bytes(64, 4, 64) - arithmetic.payload_bytes(64, 4),
    "group_bytes": lambda row: arithmetic.payload_bytes(64, 4, 64),
    "group_fp32_bytes": lambda row: arithmetic.payload_bytes(64, 32),
    "compression_ratio": lambda row: arithmetic.payload_bytes(64, 32) / arithmetic.payload_bytes(64, 4, 64),
    "four_bit_code_payload": lambda row: sized(row, "payload", "codes", subject="7B") / 1e9,
    "fp16_scale_payload": lambda row: sized(row, "payload", "scales", subject="7B") / 1e9,
    "four_bit_plus_scales_payload": lambda row: sized(row, "payload", "codes and scales", subject="7B") / 1e9,
    "fp16_payload": lambda row: arithmetic.payload_bytes(7_000_000_000, 16) / 1e9,
    "bytes_per_weight": lambda row: arithmetic.payload_bytes(1024, 4, int(row["input"].rpartition("/")[2])) / 1024,
    "matrix_count_attn_c_attn": lambda row: len(matrix_names("mixer.qkv")),
    "matrix_count_attn_c_proj": lambda row: len(matrix_names("mixer.out")),
    "matrix_count_mlp_c_fc": lambda row: len(matrix_names("ffn.up")),
    "matrix_count_mlp_c_proj": lambda row: len(matrix_names("ffn.down")),
    "matrix_count_wte": lambda row: len(matrix_names("tokens")),
    "compute_matrix_count": lambda row: len(matrix_names("layers.")),
    **{name: lambda row, form=form: payload(row, form) / MIB for name, form in FORMS.items() if name != "fp32_payload"},
    **{name: lambda row, form=form: payload(row, "float32") / payload(row, form) for name, form in RATIOS.items()},
}
PRINTED: dict[str, Measure] = {
    "median_decode_rise_8_to_1000": lambda row: rise(*reversed(row["input"].split(" / "))),
    "perplexity_rise": lambda row: rise(*reversed(row["input"].split(" / "))),
    "median_shift_context": lambda row: abs(rise(*reversed(row["input"].split(" / ")))),
    "changed_top_choice_fraction": lambda row: two(row, " - ")[0] - two(row, " - ")[1],
    "step_latency_ratio_batch_8_over": lambda row: two(row, " / ")[0] / two(row, " / ")[1],
    "throughput_ratio_batch_8_over": lambda row: two(row, " / ")[0] / two(row, " / ")[1],
    "token_ratio": lambda row: two(row, " / ")[0] / two(row, " / ")[1],
    "parameter_byte_normalization": lambda row: (
        float(row["input"].split()[0]) * payload(row | {"model": "gpt2"}, "float32") / 1e9
    ),
    "dollars_per_million_tokens": lambda row: examples.dollars_per_million_tokens(
        1.0, float(row["input"].partition("T=")[2])
    ),
    "dollars_per_million_tokens_formula": lambda row: formula_holds(
        row, {"H": 2.0, "T": 50.0}, examples.dollars_per_million_tokens(2.0, 50.0)
    ),
    "cost_multiplier": lambda row: (
        examples.dollars_per_million_tokens(1.0, 99.4, occupancy=0.5) / examples.dollars_per_million_tokens(1.0, 99.4)
    ),
    "machine_price_per_hour": lambda row: examples.dollars_per_million_tokens(1.0, 1e6 / 3600),
    "tokens_reprocessed_without_cache": lambda row: len(examples.training_pairs(range(100))),
}
QUANTITIES = CENSUS | SHAPES | WORK | ROTATION | EXAMPLES | CODES | PRINTED
BOUNDS = {"prefill-time-ratio-bound"}
"""Rows that print a bound: what is measured must stay under it."""


def fp32_payload(row) -> float:
    match row["unit"]:
        case "KiB":
            return arithmetic.payload_bytes(768 * 3072, 32) / 1024
        case "MiB":
            return payload(row, "float32") / MIB
    return arithmetic.payload_bytes(7_000_000_000, 32) / 1e9


def cubic_coefficient() -> float:
    """Taken back out of the cell: the tanh form solved for it at one point."""
    x = 1.0
    inner = math.atanh(2 * cell_gelu(x) / x - 1) / math.sqrt(2 / math.pi)
    return (inner - x) / x**3


def measure(row: dict[str, str]) -> Any:
    """The quantity, by its whole name, or by its name without the number that it ends in."""
    whole = row["quantity"]
    shorter = [whole, whole.rpartition("_")[0]] if whole.rpartition("_")[2].isdigit() else [whole]
    for suffix in ("_rounded", "_8_bit", "_careful_4_bit", "_gpt2"):
        shorter += [whole.removesuffix(suffix)] if whole.endswith(suffix) else []
    return next(QUANTITIES[name] for name in shorter if name in QUANTITIES)(row)


IDS = [name for name in ledger.judged("no") if name not in BOUNDS]


@pytest.mark.parametrize("name", IDS)
def test_figure(name):
    row = ledger.ROWS[name]
    measured = measure(row)
    assert ledger.agrees(row, measured), f"published {row['value']}, measured {measured}"


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_bound(name):
    row = ledger.ROWS[name]
    one, other = two(row, " / ")
    assert one / other < float(ledger.value(row))


def test_nothing_is_left_out():
    assert len(IDS) > 290
    rest = [row for row in ledger.ROWS.values() if row["needs_weights"] == "no" and row["id"] not in {*IDS, *BOUNDS}]
    assert {row["tolerance_kind"] for row in rest} == {"report"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("toy-dot", 5), ("gpt2-params-unique", 124439809), ("toy-attn-weights-row-1", [0.5, 0.5, 0.001])],
)
def test_a_wrong_value_does_not_agree(name, wrong):
    assert not ledger.agrees(ledger.ROWS[name], wrong)


def test_the_fillers_of_the_ledger_are_those_that_run():
    assert tuple(CONFIG["stages"]["filler"]["repeats"]) == REPEATS
