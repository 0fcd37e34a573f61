"""A run whose tables were made up: small enough to see in each what every published quantity must come to."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import polars as pl
from random_models import FULL_SHAPES
from tokentrail.forward.families import read_spec
from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import Run

GPT2, QWEN3, GRANITE = "gpt2", "qwen3-0.6b-base", "granite-4.0-h-350m-base"
SHAPES = {GPT2: "gpt2", QWEN3: "qwen3-0.6b", GRANITE: "granite-4.0-h-350m"}
Q4, HALF = "q4", "q4-half"
SCHEMES = {
    Q4: {"bits": 4, "group_size": 64, "weights": ["all"], "one_at_a_time": False},
    HALF: {"bits": 4, "group_size": 64, "weights": ["all"], "one_at_a_time": False, "divisor": "half_range"},
    "q4-outliers": {"bits": 4, "group_size": 64, "weights": ["all"], "one_at_a_time": False, "outliers": 0.01},
    **{
        f"q{bits}": {"bits": bits, "group_size": 64, "weights": ["all"], "one_at_a_time": False}
        for bits in (8, 6, 3, 2)
    },
    "q4-each": {"bits": 4, "group_size": 64, "weights": ["all"], "one_at_a_time": True},
    "q4-careful": {"bits": 4, "group_size": 32, "weights": ["compute"], "one_at_a_time": False},
}


@functools.cache
def specs():
    return {model: read_spec(FULL_SHAPES[shape]) for model, shape in SHAPES.items()}


def rows(columns: str, *values: tuple[Any, ...], model: str = GPT2) -> pl.DataFrame:
    """Rows of one model: `columns` names them, separated by spaces."""
    frame = pl.DataFrame(values, schema=columns.split(), orient="row", infer_schema_length=None)
    return frame.select(pl.lit(model).alias("model"), pl.all())


def together(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames, how="vertical_relaxed")


def words(prompt: str, tokens: list[str], model: str) -> pl.DataFrame:
    listed = [(prompt, at, 100 + at, token, False) for at, token in enumerate(tokens)]
    return rows("prompt position token_id token special", *listed, model=model)


def merged(word: str, model: str = GPT2) -> pl.DataFrame:
    """`ab cd`, from its letters to two symbols in two merges, all in one piece."""
    return rows(
        "prompt bytes piece step rank left right symbols token_ids",
        (word, 7, 0, 0, None, None, None, "Ġ a b c", ""),
        (word, 7, 0, 1, 5, "a", "b", "Ġ ab c", ""),
        (word, 7, 0, 2, 9, "Ġ", "ab", "Ġab c", "11 12"),
        model=model,
    )


def sweep(model: str, longest: str = "ok") -> pl.DataFrame:
    off = {"as_trained": 0.99, "attention_off": 0.9}
    listed = [
        ("town", n, 18 + 87 * n, variant, p - 0.05 * n, 0 if variant == "as_trained" or n == 0 else n, f"top{n}", "ok")
        for n in (0, 1)
        for variant, p in off.items()
    ]
    empty = (None, None, None) if longest != "ok" else (0.5, 16, "top16")
    listed += [("town", 16, 1410, variant, *empty, longest) for variant in off]
    columns = "filler repeats tokens variant target_probability target_rank top1_token status"
    return rows(columns, *listed, model=model)


def lens() -> pl.DataFrame:
    columns = "prompt variant site layer target_probability target_rank top1_token top1_probability"
    trained = [(0.1, 40, " now", 0.3), (0.2, 1, " a", 0.4), (0.4, 1, " b", 0.5), (0.3, 4, " the", 0.6)]
    listed = [("capital-france", "as_trained", "resid_post", layer, *said) for layer, said in enumerate(trained)]
    led = [("alice", "as_trained", "resid_post", layer, 0.5, 9 - layer, " x", 0.5) for layer in range(12)]
    led = [(*row[:5], max(row[5], 0), *row[6:]) for row in led]
    listed += led + [("alice", "attention_off", "resid_post", layer, 0.5, 11 - layer, " x", 0.5) for layer in range(12)]
    listed.append(("capital-france", "as_trained", "resid_mid", 0, 0.9, 0, " mid", 0.9))
    return rows(columns, *listed)


def residual() -> pl.DataFrame:
    sites = {"resid_pre": 1.0, "mixer_out": 2.0, "resid_mid": 3.0, "ffn_out": 4.0, "resid_post": 5.0}
    listed = [
        ("alice", position, layer, site, 10 * position + layer + size, size, size / 2)
        for position in (0, 1)
        for layer in (0, 1)
        for site, size in sites.items()
    ]
    columns = "prompt position layer site l2_norm rms mean"
    return together(rows(columns, *listed, model=model) for model in (GPT2, QWEN3))


def mixing() -> pl.DataFrame:
    """Two heads over four tokens; the fourth takes most from itself and next from ` France`, or from the first."""
    last = {0: [0.6, 0.1, 0.1, 0.2], 1: [0.05, 0.05, 0.3, 0.6]}
    listed = [("capital-france", 0, "attention", 0, 0, 0, 1.0), ("capital-france", 0, "attention", 1, 0, 0, 1.0)]
    listed += [
        ("capital-france", 0, "attention", head, 3, key, w) for head, ws in last.items() for key, w in enumerate(ws)
    ]
    columns = "prompt layer mixer head query_position key_position weight"
    hybrid = [
        ("alice", 27, "attention", 0, query, key, 1 / (query + 1)) for query in range(3) for key in range(query + 1)
    ]
    hybrid += [("alice", 28, "mamba2", 0, query, key, 0.5) for query in range(6) for key in range(query + 1)]
    return together([rows(columns, *listed), rows(columns, *hybrid, model=GRANITE)])


def attention() -> pl.DataFrame:
    columns = "prompt layer head argmax_token argmax_weight entropy_bits weight_on_first"
    return rows(
        columns,
        ("capital-france", 0, 0, "The", 0.6, 1.5, 0.6),
        ("capital-france", 0, 1, " France", 0.5, 1.0, 0.2),
        ("capital-france", 1, 0, "The", 0.9, 0.4, 0.9),
        ("capital-france", 1, 1, "The", 0.7, 0.5, 0.7),
        ("capital-japan", 0, 0, "The", 1.0, 0.0, 1.0),
    )


def ablations() -> pl.DataFrame:
    columns = "prompt component mixer layers heads operation target_probability target_rank top1_token applied_edits"
    listed = [
        ("alice", "mixer", "attention", str(layer), "", "zero", p, rank, f" t{layer}", 1)
        for layer, (p, rank) in enumerate([(0.01, 7), (0.8, 0), (0.9, 0), (0.4, 0)])
    ]
    listed.append(("alice", "mixer", "attention", "0", "", "mean", 0.0, 9, " no", 1))
    listed.append(("alice", "all attention", "attention", "0-3", "", "zero", 0.7, 0, " Alice", 4))
    hybrid = [
        ("alice", "mixer", "mamba2", "0", "", "zero", 0.2, 3, " their", 1),
        ("alice", "mixer", "mamba2", "11", "", "zero", 0.3, 3, " late", 1),
        ("alice", "all mamba2", "mamba2", "0-9", "", "zero", 0.0, 9, " *_", 28),
        ("alice", "mamba2 from layer 16", "mamba2", "16-31", "", "zero", 0.0001, 8, " the", 14),
    ]
    return together([rows(columns, *listed), rows(columns, *hybrid, model=GRANITE)])


def arithmetic() -> pl.DataFrame:
    columns = "subject quantity part rows tokens value formula"
    parameters = {
        "queries, keys and values": 1200, "attention output": 600, "FFN up": 2400, "FFN down": 3600, "last norm": 7,
        "norm before the mixer": 12, "norm before the FFN": 24, "token table": 5000, "position table": 50, "all": 12893,
    }  # fmt: skip
    listed = [("model", "parameters", part, 0, 0, value, "") for part, value in parameters.items()]
    work = {
        "queries, keys and values": 120, "attention output": 240, "FFN up": 360, "FFN down": 480,
        "attention scores": 12, "attention weights times values": 24,
    }  # fmt: skip
    listed += [("model", "flops", part, 1, 5, value, "") for part, value in work.items()]
    listed += [("model", "flops", part, 8, 5, 8 * value, "") for part, value in work.items()]
    listed += [("model", "cache", "keys and values", r, t, 73728 * r * t, "") for r, t in ((1, 1), (1, 16), (8, 64))]
    listed += [
        ("model", "activation", "FFN, one layer", 8, 1000, 98304000, ""),
        ("model", "activation", "stream", 1, 5, 15360, ""),
    ]
    listed += [
        ("model", "payload", "float32", 0, 0, 4096, ""),
        ("model", "payload", "4 bits, group 64", 0, 0, 512, ""),
        ("model", "payload", "8 bits, group 64", 0, 0, 1024, ""),
        ("model", "payload", "4 bits, group 32, tables float32", 0, 0, 2048, ""),
        ("full", "cache", "keys and values", 1, 1, 524288, "2*32*32*128*1*2"),
        ("full", "cache", "keys and values", 1, 2048, 2**30, "2*32*32*128*2048*2"),
        ("grouped", "cache", "keys and values", 1, 1, 131072, "2*32*8*128*1*2"),
        ("7b", "payload", "codes", 0, 0, 3_500_000_000, "7000000000*4/8"),
        ("7b", "payload", "scales", 0, 0, 218_750_000, "109375000*2"),
        ("7b", "payload", "codes and scales", 0, 0, 3_718_750_000, "7000000000*4/8 + 109375000*2"),
    ]
    hybrid = [("model", "cache", "states", 1, tokens, 400, "") for tokens in (18, 18000)]
    return together([rows(columns, *listed), rows(columns, *hybrid, model=GRANITE)])


def quantization() -> pl.DataFrame:
    columns = (
        "scheme families execution kl top1_token top1_probability target_probability perplexity mean_kl top1_agreement "
        "status reason"
    )
    kls = {Q4: 4.0, HALF: 4.8316, "q4-outliers": 9.0, "q8": 0.0166, "q6": 0.4, "q3": 15.0, "q2": 13.0}
    tokens = {"q8": " the", "q6": " the"}
    listed = [
        (name, "all", "simulated", kl, tokens.get(name, " a"), 0.4, 0.01, 130.0, 0.2, 0.8, "ok", "")
        for name, kl in kls.items()
    ]
    parts = {"attention.qkv": 0.07, "attention.out": 0.05, "ffn.up": 0.04, "ffn.down": 0.045, "tokens": 4.3}
    listed += [
        ("q4-each", part, "simulated", kl, " the", 0.1, 0.03, 1.0, 0.0, 1.0, "ok", "") for part, kl in parts.items()
    ]
    listed.append(("q4-careful", "compute", "simulated", 0.15, " the", 0.12, 0.03, 145.0, 0.22, 0.75, "ok", ""))
    listed.append(("float32", "", "unquantized", 0.0, " the", 0.085, 0.032, 119.0, 0.0, 1.0, "ok", ""))
    return rows(columns, *listed)


def quantization_error() -> pl.DataFrame:
    columns = "scheme tensor mean_abs_error std relative_error max_abs max_sigma beyond_4_sigma first_scale "
    columns += "first_weights first_codes status reason"
    same = ("layers.0.ffn.up.weight", 0.0145, 0.1412, 0.103, 4.5, 32.5, 0.00126)
    weights = "0.0942, 0.0982, -0.0321"
    return rows(
        columns,
        (Q4, *same, 0.052, weights, "2, 2, -1", "ok", ""),
        (HALF, *same, 0.04576, weights, "2, 3, -1", "ok", ""),
        (Q4, "layers.0.ffn.down.weight", *same[1:], 0.9, "1, 1, 1", "7, 7, 7", "ok", ""),
    )


def tables() -> dict[str, pl.DataFrame]:
    says = "prompt rank token_id token logit probability nll is_target"
    timing = "implementation kind context batch rounds median_ms p10_ms p90_ms repeat_median_ms tokens_per_second "
    timing += "status reason"
    return {
        "weights": rows("file revision sha256", ("config.json", "abc", "00"), ("model.safetensors", "abc", "11")),
        "census": rows(
            "tensor family storage counted_parameters",
            ("wte.weight", "token_embedding", "wte.weight", 5000),
            ("lm_head.weight", "head", "wte.weight", 0),
        ),
        "tokens": together(
            words(prompt, tokens, model)
            for model in SHAPES
            for prompt, tokens in {
                "alice": ["In", " the", " Alice", " back", " to"],
                "capital-france": ["The", " capital", " France", " is"],
            }.items()
        ),
        "merges": together([merged(" abc"), merged(" France")]),
        "next_token": rows(
            says,
            ("capital-france", 0, 1, " the", 2.0, 0.5, 0.6931, False),
            ("capital-france", 1, 2, " now", 1.5, 0.3, 1.2, False),
            ("capital-france", 2, 3, " France", 1.25, 0.2, 1.6, False),
            ("capital-france", 4, 4, " Paris", 1.0, 0.1, 2.3026, True),
        ),
        "distribution": rows(
            "prompt step decoding entropy_bits effective_choices top5_mass tokens_for_90_percent vocabulary",
            ("capital-france", 0, "none", 3.0, 8.0, 0.75, 1500, 50257),
            ("capital-france", 0, "top-k 5", 1.0, 2.0, 1.0, 4, 50257),
            ("capital-france", 1, "none", 2.0, 4.0, 0.8, 40, 50257),
        ),
        "parity": rows("prompt position max_abs_logit_diff", ("alice", 0, 1e-5), ("alice", 1, 3e-5), ("other", 0, 1.0)),
        "parity_layers": rows(
            "prompt layer max_abs_diff",
            ("capital-france", 0, 1e-7),
            ("capital-france", 0, 2e-7),
            ("capital-france", 1, 1.0),
        ),
        "name_swaps": together(
            rows(
                "set template name rank top1_token",
                ("five-names", "alice", "Carol", 0, " Carol"),
                ("five-names", "alice", "Mirabel", 2, " M"),
                ("hundred-names", "book", "Carol", 0, " book"),
                model=model,
            )
            for model in SHAPES
        ),
        "filler_sweep": together([sweep(GPT2, "exceeds_positions"), sweep(QWEN3), sweep(GRANITE)]),
        "lens": lens(),
        "residual": residual(),
        "attention": attention(),
        "mixing": mixing(),
        "long_range": rows("layer mixer state_retention", (0, "mamba2", 0.5), (1, "mamba2", 0.01), model=GRANITE),
        "sink": rows(
            "prompt intervention layer kl",
            ("capital-france", "mask", 0, 4.5),
            ("capital-france", "mask", 1, 4.5),
            ("capital-france", "replace_token", 0, 0.2),
            ("alice", "mask", 0, 1.5),
        ),
        "ablations": ablations(),
        "mlp": rows(
            "prompt position layer near_zero_fraction negative_fraction max min",
            ("capital-france", 0, 0, 0.9, 0.9, 9.0, -9.0),
            ("capital-france", 1, 0, 0.03, 0.91, 3.65, -0.17),
        ),
        "block": together(
            [
                rows(
                    "prompt layer step shape",
                    ("capital-france", 0, "attention weights", "1x12x5x5"),
                    ("capital-france", 0, "queries by head", "1x12x5x64"),
                    ("capital-france", 0, "FFN widened", "1x5x3072"),
                ),
            ]
        ),
        "positions": together(
            [
                rows(
                    "probe prompt offset query_position key_position score",
                    ("position_norm", "", 0, None, None, 9.88),
                    ("position_norm", "", 17, None, None, 3.59),
                    ("token_norm", "alice", 0, None, None, 1.0),
                    ("token_norm", "alice", 4, None, None, 2.52),
                ),
                rows(
                    "probe prompt offset query_position key_position score",
                    ("unrotated", "", 0, None, None, 11.796),
                    ("rotation", "", 12, 17, 5, 1.14),
                    ("rotation", "", 12, 112, 100, 1.15),
                    model=QWEN3,
                ),
            ]
        ),
        "geometry": rows(
            "probe token neighbour rank cosine value",
            ("token_norm", "", "", None, None, 3.96),
            ("position_norm", "", "", None, None, 3.39),
            ("row", "The", "", 0, None, -0.069),
            ("row", "The", "", 1, None, -0.02),
            ("neighbours", " Paris", "Paris", 0, 0.834, None),
            ("neighbours", " Paris", " France", 1, 0.634, None),
            ("neighbours", " book", " books", 0, 0.9, None),
            ("analogy", " king + woman − man", " queen", 0, 0.709, None),
            ("analogy", " king + woman − man", " princess", 1, 0.605, None),
            ("analogy_all", " king + woman − man", " king", 0, 0.8, None),
            ("analogy_all", " king + woman − man", " queen", 1, 0.709, None),
            ("pair", " king", " queen", None, 0.657, None),
            ("random", " Paris", "", None, 0.242, None),
        ),
        "arithmetic": arithmetic(),
        "cache": rows(
            "prompt kind step token max_abs_logit_diff mean_abs_logit_diff top1_agrees cache_tokens",
            ("capital-france", "decode", 0, " is", 9.0, 9.0, True, 5),
            ("capital-france", "decode", 1, " the", 2e-4, 3e-5, True, 6),
            ("capital-france", "decode", 2, " capital", 1e-4, 4e-5, False, 7),
            ("capital-france", "continuation", 1, " x", 8.0, 8.0, False, 9),
        ),
        "timing_summary": rows(
            timing,
            ("tokentrail", "decode", 8, 1, 7, 8.8, 8.7, 9.0, 8.9, 113.0, "ok", ""),
            ("tokentrail", "decode", 1000, 1, 7, None, None, None, None, None, "skipped", "it does not fit"),
            ("tokentrail", "batch", 64, 2, 7, 15.0, 14.0, 16.0, 15.5, 131.0, "ok", ""),
            ("tokentrail", "prefill", 32, 1, 7, 26.0, 25.0, 29.0, 24.0, 1198.0, "ok", ""),
            ("transformers eager", "decode", 8, 1, 7, 99.0, 99.0, 99.0, 99.0, 9.0, "ok", ""),
        ),
        "machine": rows("fact value", ("processor", "A CPU"), ("threads", "2"), ("torch", "2.13.0")),
        "cost": rows("price_per_hour", (1.0,), (1.0,)),
        "quantization": quantization(),
        "quantization_error": quantization_error(),
    }


def run(**changed: pl.DataFrame) -> Run:
    """The made-up run, with some of its tables changed."""
    return Run(tables() | changed, specs(), {"alice": " Alice"}, SCHEMES)


def figure(quantity: str, input: str = "capital-france", model: str = GPT2, value: str = "0", **other: Any) -> Figure:
    empty = {"stage": "", "tolerance_kind": "exact", "tolerance": None, "unit": "", "note": "", "needs_weights": True}
    return Figure(id=quantity, quantity=quantity, input=input, model=model, value=value, **(empty | other))
