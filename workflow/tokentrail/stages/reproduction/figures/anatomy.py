"""Figures of what the models are made of: their configuration, their tables as vectors, one layer step by step."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from tokentrail.forward import spec as specs
from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run

STEPS = {
    "input_ids": "input ids",
    "token_rows": "token rows",
    "position_rows": "position rows",
    "initial_residual": "stream entering",
    "combined_qkv": "q, k and v together",
    "query_heads": "queries by head",
    "key_heads": "keys by head",
    "value_heads": "values by head",
    "attention_weights": "attention weights",
    "attention_update": "attention update",
    "after_attention": "stream after the mixer",
    "mlp_wide": "FFN widened",
    "mlp_activated": "FFN activated",
    "mlp_update": "FFN update",
    "block_output": "stream leaving",
}
"""What the ledger calls the steps of a layer, and what the table `block` does."""
ACTIVATIONS = {"gelu": {"gelu", "gelu_tanh", "gelu_new"}, "swiglu": {"swiglu"}}
"""The names that write-ups and configurations have for the FFN's cells; GELU is the tanh form."""
WORDS = {
    "queen_lower": " queen",
    "queen_upper": " Queen",
    "princess": " princess",
    "kings": " kings",
    "paris_nospace": "Paris",
    "france": " France",
    "french": " French",
    "london": " London",
    "copenhagen": " Copenhagen",
}
PAIRS = {"queen_king": (" queen", " king"), "paris_france": (" Paris", " France")}


def kinds(run: Run, model: str) -> list[str]:
    return [specs.kind_of(layer.mixer) for layer in run.spec(model).layers]


def kind_at(run: Run, figure: Figure, layer: str) -> str:
    found = kinds(run, figure.model)
    if int(layer) >= len(found):
        raise NotRun(f"{figure.model} has {len(found)} layers")
    return found[int(layer)]


def attention(run: Run, figure: Figure) -> specs.Attention:
    """The attention of the model; alike in every layer that has it."""
    mixers = (layer.mixer for layer in run.spec(figure.model).layers)
    found = next((mixer for mixer in mixers if isinstance(mixer, specs.Attention)), None)
    if found is None:
        raise NotRun(f"{figure.model} has no attention layer")
    return found


def rope_theta(run: Run, figure: Figure) -> float:
    rope = attention(run, figure).rope
    if rope is None:
        raise NotRun(f"{figure.model} does not rotate its queries and keys")
    return rope.theta


def activation(run: Run, figure: Figure) -> str:
    """The printed name, if it is one of those that the cell of the model's FFN has."""
    kind = run.spec(figure.model).layers[0].ffn.kind
    return figure.value if figure.value in ACTIVATIONS[kind] else kind


def checkpoint(run: Run, figure: Figure, column: str, file: str) -> str:
    return run.row("weights", figure.model, file=file)[column]


def shares_storage(run: Run, figure: Figure) -> bool:
    """Whether the output head is the token table's own storage, counted once."""
    head = run.rows("census", figure.model, family="head")
    table = run.rows("census", figure.model, family="token_embedding")
    return set(head["storage"]) == set(table["storage"]) and head["counted_parameters"].sum() == 0


def shape_of_step(run: Run, figure: Figure, step: str) -> list[int]:
    if step == "input_ids":
        return [1, run.rows("tokens", figure.model, prompt=figure.input).height]
    row = run.row("block", figure.model, prompt=figure.input, layer=0, step=STEPS[step])
    return sides(row["shape"])


def sides(shape: str) -> list[int]:
    return [int(side) for side in shape.split("x")]


def norm(run: Run, figure: Figure, probe: str, position: str) -> float:
    return run.row("positions", figure.model, probe=probe, offset=int(position))["score"]


def token_norm(run: Run, figure: Figure) -> float:
    """Of the last token of the published sentence, ` to`."""
    rows = run.rows("positions", figure.model, probe="token_norm", prompt="alice")
    return rows.sort("offset")["score"][-1]


def rotation(run: Run, query: str, key: str) -> float:
    for model in rotating(run):
        return run.row("positions", model, probe="rotation", query_position=int(query), key_position=int(key))["score"]
    raise NotRun("no model of the run rotates heads of 128 with theta 1,000,000")


def unrotated(run: Run, figure: Figure) -> float:
    for model in rotating(run):
        return run.row("positions", model, probe="unrotated")["score"]
    raise NotRun("no model of the run rotates heads of 128 with theta 1,000,000")


def rotating(run: Run) -> list[str]:
    """Models whose rotation is that of the printed scores."""
    published = specs.Rope(1e6)
    return [
        model
        for model in run.models
        if any(
            isinstance(layer.mixer, specs.Attention) and (layer.mixer.rope, layer.mixer.head_dim) == (published, 128)
            for layer in run.spec(model).layers
        )
    ]


def neighbours(run: Run, figure: Figure, probe: str) -> pl.DataFrame:
    rows = run.rows("geometry", figure.model, probe=probe)
    word = " Paris" if probe == "neighbours" else " king +"
    rows = rows.filter(pl.col("token").str.starts_with(word))
    if rows.is_empty() or rows["neighbour"].to_list() == [""]:
        raise NotRun(f"geometry was not asked for{word}, or the word is not one token of {figure.model}")
    return rows.sort("rank")


def cosine_to(run: Run, figure: Figure, name: str) -> float:
    rows = neighbours(run, figure, "neighbours" if figure.input == " Paris" else "analogy")
    found = rows.filter(pl.col("neighbour") == WORDS[name])
    if found.is_empty():
        listed = ", ".join(map(repr, rows["neighbour"]))
        raise NotRun(f"{WORDS[name]!r} is not among the nearest, which are {listed}")
    return found["cosine"][0]


def rank_of_queen(run: Run, figure: Figure, probe: str) -> int:
    rows = neighbours(run, figure, probe).filter(pl.col("neighbour") == " queen")
    if rows.is_empty():
        raise NotRun("' queen' is not among the nearest")
    return rows["rank"][0]


def pair(run: Run, figure: Figure, name: str) -> float:
    one, other = PAIRS[name]
    rows = run.rows("geometry", figure.model, probe="pair")
    either = rows.filter(
        pl.concat_list("token", "neighbour").list.sort() == pl.lit(sorted((one, other)), dtype=pl.List(pl.String))
    )
    if either.is_empty():
        raise NotRun(f"geometry was not asked for the pair {one!r}, {other!r}")
    return either["cosine"][0]


def row_value(run: Run, figure: Figure, channel: str) -> float:
    return run.row("geometry", figure.model, probe="row", token=figure.input, rank=int(channel))["value"]


def mean_norm(run: Run, figure: Figure, probe: str) -> float:
    return run.row("geometry", figure.model, probe=probe, token="")["value"]


def longer(run: Run, figure: Figure) -> bool:
    return norm(run, figure, "position_norm", "17") > token_norm(run, figure)


def counted(run: Run, figure: Figure, kind: str, start: str | None = None) -> int:
    return kinds(run, figure.model)[int(start or 0) :].count(kind)


FIGURES: dict[str, Any] = {
    r"layer_count": lambda run, f: len(run.spec(f.model).layers),
    r"blocks_after_first": lambda run, f: len(run.spec(f.model).layers) - 1,
    r"(mamba2|attention)_layer_count(?:_from_layer_(\d+))?": counted,
    r"layer_kind_layer_(\d+)": kind_at,
    r"output_projection_tied_to_embedding": lambda run, f: run.spec(f.model).tied,
    r"logit_divisor": lambda run, f: run.spec(f.model).logit_divisor,
    r"residual_multiplier": lambda run, f: run.spec(f.model).layers[0].sublayers[0].scale,
    r"embedding_multiplier": lambda run, f: run.spec(f.model).embedding_scale,
    r"model_width|embedding_row_length": lambda run, f: run.spec(f.model).width,
    r"vocab_size": lambda run, f: run.spec(f.model).vocabulary,
    r"(?:query_)?head_count": lambda run, f: attention(run, f).heads,
    r"total_head_count": lambda run, f: attention(run, f).heads * counted(run, f, "attention"),
    r"(?:kv_head|key_head|value_head)_count": lambda run, f: attention(run, f).kv_heads,
    r"query_heads_per_kv_head": lambda run, f: attention(run, f).heads / attention(run, f).kv_heads,
    r"kv_memory_ratio_vs_full_heads": lambda run, f: attention(run, f).kv_heads / attention(run, f).heads,
    r"head_dim": lambda run, f: attention(run, f).head_dim,
    r"head_count_times_head_dim": lambda run, f: attention(run, f).heads * attention(run, f).head_dim,
    r"attention_scale": lambda run, f: attention(run, f).scale,
    r"ffn_width": lambda run, f: run.spec(f.model).layers[0].ffn.width,
    r"ffn_activation": activation,
    r"norm_kind": lambda run, f: run.spec(f.model).norm.kind,
    r"layer_norm_epsilon": lambda run, f: run.spec(f.model).norm.eps,
    r"layer_norm_(?:scale|offset)_count": lambda run, f: run.spec(f.model).width,
    r"position_table_rows": lambda run, f: run.spec(f.model).learned_positions,
    r"has_position_table": lambda run, f: run.spec(f.model).learned_positions is not None,
    r"position_embedding_type": lambda run, f: "nope" if attention(run, f).rope is None else "rope",
    r"rope_theta": rope_theta,
    r"hub_revision": lambda run, f: checkpoint(run, f, "revision", "model.safetensors"),
    r"model_safetensors_sha256": lambda run, f: checkpoint(run, f, "sha256", "model.safetensors"),
    r"embedding_and_head_share_data_pointer": shares_storage,
    r"shape_(\w+)": shape_of_step,
    r"embedding_output_shape|mlp_input_shape": lambda run, f: (
        [run.rows("tokens", f.model, prompt=f.input).height, run.spec(f.model).width]
    ),
    r"mlp_wide_shape": lambda run, f: shape_of_step(run, f, "mlp_wide")[1:],
    r"attention_weights_shape_per_layer": lambda run, f: shape_of_step(run, f, "attention_weights")[1:],
    r"score_grid_shape_per_head": lambda run, f: shape_of_step(run, f, "attention_weights")[2:],
    r"value_blend_shape_per_head": lambda run, f: shape_of_step(run, f, "query_heads")[2:],
    r"combined_qkv_width": lambda run, f: (
        (attention(run, f).heads + 2 * attention(run, f).kv_heads) * attention(run, f).head_dim
    ),
    r"numbers_reindexed_by_head_reshape": lambda run, f: math.prod(shape_of_step(run, f, "query_heads")),
    r"unembed_input_shape": lambda run, f: [1, run.spec(f.model).width],
    r"logits_shape": lambda run, f: [1, run.spec(f.model).vocabulary],
    r"token_table_shape": lambda run, f: [run.spec(f.model).vocabulary, run.spec(f.model).width],
    r"max_abs_diff_reconstructed_block_0": lambda run, f: run.rows("parity_layers", f.model, prompt=f.input, layer=0)[
        "max_abs_diff"
    ].max(),
    r"position_row_norm_position_(\d+)": lambda run, f, at: norm(run, f, "position_norm", at),
    r"token_row_norm": token_norm,
    r"position_row_norm_exceeds_token_row_norm": longer,
    r"mean_(token|position)_row_norm": lambda run, f, table: mean_norm(run, f, f"{table}_norm"),
    r"embedding_row_value_(\d+)": row_value,
    r"rope_score_without_rotation": unrotated,
    r"rope_score_(\d+)_(\d+)": lambda run, f, query, key: rotation(run, query, key),
    r"position_gap_(\d+)_(\d+)": lambda run, f, query, key: int(query) - int(key),
    r"abs_difference_score_(\d+)_(\d+)_vs_(\d+)_(\d+)": lambda run, f, a, b, c, d: abs(
        rotation(run, a, b) - rotation(run, c, d)
    ),
    r"cosine_to_(\w+)": cosine_to,
    r"cosine_(queen_king|paris_france)": pair,
    r"nearest_tokens_excluding_inputs": lambda run, f: neighbours(run, f, "analogy")["neighbour"].to_list()[:4],
    r"nearest_tokens": lambda run, f: neighbours(run, f, "neighbours")["neighbour"].to_list()[:5],
    r"queen_rank_one_based_excluding_inputs": lambda run, f: rank_of_queen(run, f, "analogy") + 1,
    r"queen_rank_zero_based_all_rows": lambda run, f: rank_of_queen(run, f, "analogy_all"),
    r"mean_cosine_to_random_tokens": lambda run, f: run.row("geometry", f.model, probe="random", token=f.input)[
        "cosine"
    ],
}
