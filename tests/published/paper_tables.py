"""The tables of a run that found what was published: each figure stands in the row that its write-up speaks of.

What a tokenizer or a shape decides is measured; what needs weights is written down. Long tables of the write-ups are
taken from the ledger by the figures' ids, all else is repeated here. Beside what is asked for stand rows with other
values, which no query may find.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import ranks
from inputs import REPEATS, TEXTS, WORDS, filled
from ledger import ROWS, value
from random_models import FULL_SHAPES
from tokentrail import config, rooms
from tokentrail.config import settings
from tokentrail.forward.families import read_spec
from tokentrail.forward.spec import Spec
from tokentrail.stages.arithmetic import measure as arithmetic
from tokentrail.stages.merges import measure as merges
from tokentrail.stages.reproduction.run import Run
from tokentrail.stages.tokens import measure as tokens

PAPER = config.load(Path(__file__).parents[2] / "config/paper.yaml")
GPT2, QWEN3, GRANITE = PAPER.models
SHAPES = {GPT2: "gpt2", QWEN3: "qwen3-0.6b", GRANITE: "granite-4.0-h-350m"}
SCHEMES = {name: scheme.model_dump() for name, scheme in PAPER.stages.quantization.schemes.items()}
TAKEN = ("half_range", "input")
"""The choice of divisor and grouping that the write-up on quantization made; rows of the others are wrong."""


def printed(figure: str) -> Any:
    """A published value by its id, as the tables hold it: shares for percents."""
    row = ROWS[figure]
    found = value(row)
    if isinstance(found, str | list):
        return found
    return float(found) / (100 if row["unit"] == "percent" else 1)


@functools.cache
def specs() -> dict[str, Spec]:
    return {model: read_spec(FULL_SHAPES[shape]) for model, shape in SHAPES.items()}


def rows(columns: str, *values: tuple[Any, ...], model: str = GPT2) -> pl.DataFrame:
    """Rows of one model: `columns` names them, separated by spaces."""
    frame = pl.DataFrame(values, schema=columns.split(), orient="row", infer_schema_length=None)
    return frame.select(pl.lit(model).alias("model"), pl.all())


def together(*frames: pl.DataFrame) -> pl.DataFrame:
    return pl.concat(frames, how="diagonal_relaxed")


def of_each(columns: str, values: dict[str, Iterable[tuple[Any, ...]]]) -> pl.DataFrame:
    return together(*(rows(columns, *listed, model=model) for model, listed in values.items()))


@functools.cache
def of_tokenizers_and_shapes() -> dict[str, pl.DataFrame]:
    """`tokens`, `merges` and `arithmetic`, measured."""
    found: dict[str, list[pl.DataFrame]] = {"tokens": [], "merges": [], "arithmetic": []}
    for model, shape in SHAPES.items():
        checkpoint = SimpleNamespace(config=FULL_SHAPES[shape])
        tokenizer = ranks.tokenizer(model, ranks.kept()[model])
        prompts = {name: PAPER.prompts[name].model_dump() for name in PAPER.prompts if name in TEXTS}
        about = {"model": model, "prompts": prompts, "words": WORDS}
        found["tokens"].append(tokens.measure(checkpoint, tokenizer, about))
        found["merges"].append(merges.measure(tokenizer, about | {"prompts": {}}))
        found["arithmetic"].append(arithmetic.measure(checkpoint, settings(PAPER, "arithmetic", model)))
    whole = {table: together(*frames) for table, frames in found.items()}
    # Of GPT-2's merges only those of the published texts are kept here, and numbered anew.
    numbered = {step: int(printed(f"gpt2-bpe-step-{step}-rank")) for step in range(1, 9)}
    own = pl.col("step").replace_strict(numbered, default=None, return_dtype=pl.Int64)
    kept = pl.when(pl.col("prompt") == "Ciechanowski").then(own).otherwise("rank")
    return whole | {"merges": whole["merges"].with_columns(rank=kept)}


def next_token() -> pl.DataFrame:
    france = [
        (" the", 0.084591, 2.469926, 0.964523, False),
        (" now", 0.048, 3.04, 0.4, False),
        (" a", 0.046, 3.08, 0.35, False),
        (" France", 0.032377, 3.430321, 0.01, False),
        (" Paris", 0.032243, 3.434449, 0.0, True),
    ]
    first = {"cat-sat": (" floor", 0.076), "demo-france-japan": (" Tokyo", 0.611), "two-plus-two": (" 3", 0.102)}
    first |= {"quick-brown": ("ie", 0.192)}
    final = {"japan": (1, 0.06727), "germany": (1, 0.05273), "italy": (0, 0.15735), "canada": (22, 0.00525)}
    said = {GPT2: (0.776, " her", 0.057), QWEN3: (0.980, " the", 0.006), GRANITE: (0.986, " him", 0.006)}
    listed: dict[str, list[tuple[Any, ...]]] = {
        model: [("alice", 0, " Alice", best, 0.3, 9.0, True), ("alice", 1, second, next_best, 2.9, 7.0, False)]
        for model, (best, second, next_best) in said.items()
    }
    listed[GPT2] += [
        ("capital-france", at, token, p, nll, logit, t) for at, (token, p, nll, logit, t) in enumerate(france)
    ]
    listed[GPT2] += [(prompt, 0, token, p, 2.0, 5.0, True) for prompt, (token, p) in first.items()]
    listed[GPT2] += [(f"capital-{land}", at, "x", p, 2.0, 5.0, True) for land, (at, p) in final.items()]
    return of_each("prompt rank token probability nll logit is_target", listed)


def lens() -> pl.DataFrame:
    """After each layer. `first`: where the target begins to lead; before it stands another token."""

    def led(first: int, layers: int, before: str, variant: str = "as_trained") -> list[tuple[Any, ...]]:
        leads = [layer >= first for layer in range(layers)]
        return [
            ("alice", variant, "resid_post", layer, 0.5, 0 if lead else 3, " Alice" if lead else before, 0.5)
            for layer, lead in enumerate(leads)
        ]

    def land(name: str, best: int, rank: int, p: float) -> list[tuple[Any, ...]]:
        ranked = [rank + (0 if layer == best else 5 + abs(layer - best)) for layer in range(12)]
        return [
            (name, "as_trained", "resid_post", at, p if at == best else 0.01, r, "x", 0.5)
            for at, r in enumerate(ranked)
        ]

    france = [
        tuple(printed(f"gpt2-france-lens-{layer}-{what}") for what in ("paris-prob", "paris-rank", "top1", "top1-prob"))
        for layer in range(12)
    ]
    lands = [("capital-japan", 10, 0, 0.46114), ("capital-germany", 10, 0, 0.34657), ("capital-italy", 11, 0, 0.15735)]
    lands.append(("capital-canada", 10, 2, 0.03064))
    listed = {
        GPT2: led(9, 12, " him")
        + [("capital-france", "as_trained", "resid_post", layer, *said) for layer, said in enumerate(france)]
        + [row for each in lands for row in land(*each)]
        + [("capital-france", "as_trained", "resid_mid", layer, 0.9, 0, " mid", 0.9) for layer in range(12)],
        QWEN3: led(24, 28, " her"),
        GRANITE: led(27, 32, " her") + led(28, 32, " her", "attention_off"),
    }
    return of_each("prompt variant site layer target_probability target_rank top1_token top1_probability", listed)


def residual() -> pl.DataFrame:
    steps = {"initial-residual": "resid_pre", "attention-update": "mixer_out", "after-attention": "resid_mid"}
    steps |= {"mlp-update": "ffn_out", "block-output": "resid_post"}
    france = [("capital-france", 4, 0, site, printed(f"gpt2-france-norm-{s}"), 1.0, 0.5) for s, site in steps.items()]
    entering = {GPT2: (0.162, 0.01), QWEN3: (0.0242, 0.034 * 0.0242)}
    listed = {
        model: [("alice", 17, 0, "resid_pre", 1.0, *entering.get(model, (1.0, 0.5)))]
        + [("alice", 17, layer, "resid_post", norm, 1.0, 0.5) for layer, norm in enumerate((first, most, most / 2))]
        + [("alice", 3, 0, site, 9999.0, 9.0, 9.0) for site in steps.values()]
        for model, (first, most) in {GPT2: (52.0, 512.0), QWEN3: (7.0, 696.0), GRANITE: (7.0, 67.0)}.items()
    }
    listed[GPT2] += france + [("capital-france", 3, 0, site, 9999.0, 9.0, 9.0) for site in steps.values()]
    return of_each("prompt position layer site l2_norm rms mean", listed)


def attention() -> pl.DataFrame:
    heads = [
        tuple(printed(f"gpt2-france-l0h{head}-{what}") for what in ("argmax", "weight", "entropy", "pos0"))
        for head in range(12)
    ]
    listed = [("capital-france", 0, head, *said) for head, said in enumerate(heads)]
    # The mean over all layers is printed with two decimals, those of the layers with one.
    means = [printed(f"gpt2-france-sink-layer-{layer}") for layer in range(1, 11)] + [0.6646]
    listed += [
        ("capital-france", layer, head, "The", 0.9, 0.4, mean + 0.01 * (head - 5.5))
        for layer, mean in enumerate(means, 1)
        for head in range(12)
    ]
    listed += [("cat-sat", 0, head, " sat", 0.99, 0.1, 0.99) for head in range(12)]
    return rows("prompt layer head argmax_token argmax_weight entropy_bits weight_on_first", *listed)


def mixing() -> pl.DataFrame:
    """Rows of weights, of attention and of Mamba2 unrolled."""

    def even(prompt: str, layer: int, mixer: str, tokens: int, weight: float | None = None) -> list[tuple[Any, ...]]:
        return [
            (prompt, layer, mixer, 0, query, key, weight or 1 / (query + 1))
            for query in range(tokens)
            for key in range(query + 1)
        ]

    last = {head: [0.4, 0.1, 0.1, 0.05, 0.35] for head in range(12)}
    last[0] = [printed(f"gpt2-france-attn-l0h0-pos-{key}") for key in range(5)]
    last[6] = [0.217, 0.1, 0.1, 0.353, 0.23]
    last[7] = [0.05, 0.3, 0.2, 0.25, 0.2]
    france = [
        ("capital-france", 0, "attention", head, 4, key, w) for head, ws in last.items() for key, w in enumerate(ws)
    ]
    france += [("capital-france", 0, "attention", head, 3, 3, 0.9) for head in range(12)]
    return of_each(
        "prompt layer mixer head query_position key_position weight",
        {
            GPT2: france + even("alice", 0, "attention", 18) + even("cat-sat", 0, "attention", 5),
            QWEN3: even("alice", 0, "attention", 18),
            GRANITE: even("alice", 27, "attention", 18) + even("alice", 28, "mamba2", 18, 0.5),
        },
    )


def ablations() -> pl.DataFrame:
    def off(layers: int, special: int, mixer: str, said: tuple[Any, ...], other: float) -> list[tuple[Any, ...]]:
        usual = (other, 0, " Alice")
        return [
            ("alice", "mixer", mixer, str(layer), "zero", *(said if layer == special else usual), 1)
            for layer in range(layers)
        ]

    wrong = ("alice", "mixer", "attention", "5", "mean", 0.001, 9, " no", 1)
    listed = {
        GPT2: [*off(12, 5, "attention", (0.427, 0, " Alice"), 0.7), wrong],
        QWEN3: off(28, 0, "attention", (0.01, 9, " Web"), 0.843),
        GRANITE: [
            *off(2, 0, "mamba2", (0.1, 3, " their"), 0.9),
            ("alice", "all mamba2", "mamba2", "0-31", "zero", 0.0, 99, " *_", 28),
            ("alice", "mamba2 from layer 16", "mamba2", "16-31", "zero", 0.0001, 98, " the", 14),
            ("alice", "all attention", "attention", "10, 13, 17, 27", "zero", 0.988, 0, " Alice", 4),
        ],
    }
    columns = "prompt component mixer layers operation target_probability target_rank top1_token applied_edits"
    return of_each(columns, listed)


def filler_sweep() -> pl.DataFrame:
    on = {0: (0.986, 0, " Alice"), 1: (0.97, 0, " Alice"), 4: (0.96, 0, " Alice"), 16: (0.990, 0, " Alice")}
    off = {0: (0.988, 0, " Alice"), 1: (0.138, 1, " the"), 4: (0.01, 5, " the"), 16: (0.002, 9, " the")}
    listed: dict[str, list[tuple[Any, ...]]] = {}
    for model in SHAPES:
        tokenizer = ranks.tokenizer(model, ranks.kept()[model])
        lengths = {repeats: len(tokenizer.pieces(filled(repeats))) for repeats in REPEATS}
        fits = {repeats: model != GPT2 or length <= 1024 for repeats, length in lengths.items()}
        listed[model] = [
            ("town", n, lengths[n], variant, *(said[n] if fits[n] else (None, None, None)), *status[fits[n]])
            for variant, said in (("as_trained", on), ("attention_off", off))
            for status in [{True: ("ok", ""), False: ("exceeds_positions", "longer than the model has positions")}]
            for n in REPEATS
        ]
        listed[model].append(("hay", 2, 7, "as_trained", 0.1, 3, " no", "ok", ""))
    return of_each("filler repeats tokens variant target_probability target_rank top1_token status reason", listed)


def anatomy() -> dict[str, pl.DataFrame]:
    """`weights`, `census`, `block`, `positions` and `geometry`."""
    steps = {
        "token rows": "1x5x768", "position rows": "1x5x768", "stream entering": "1x5x768",
        "q, k and v together": "1x5x2304", "queries by head": "1x12x5x64", "keys by head": "1x12x5x64",
        "values by head": "1x12x5x64", "attention weights": "1x12x5x5", "attention update": "1x5x768",
        "stream after the mixer": "1x5x768", "FFN widened": "1x5x3072", "FFN activated": "1x5x3072",
        "FFN update": "1x5x768", "stream leaving": "1x5x768",
    }  # fmt: skip
    shapes = [(prompt, 0, step, shape) for prompt in ("capital-france", "cat-sat") for step, shape in steps.items()]
    shapes += [("alice", 0, step, "1x18x1") for step in steps]
    norms = {at: printed(f"gpt2-pos-norm-{at}") for at in range(6)} | {17: 3.59}
    turned = [(17, 5, 1.14666), (112, 100, 1.14666), (17, 16, 10.646)]
    nearest = {"Paris": 0.834, " France": 0.634, " French": 0.581, " London": 0.579, " Copenhagen": 0.570}
    royal = {" queen": 0.709, " princess": 0.605, " Queen": 0.596, " kings": 0.593, " prince": 0.5}
    sum_of = " king + woman − man"
    told = "probe token neighbour rank cosine value"
    row_of_to = [("row", " to", "", at, None, printed(f"qwen3-to-embed-row-{at}")) for at in range(4)]
    return {
        "weights": rows(
            "file revision sha256",
            ("config.json", printed("gpt2-pin-revision"), "00"),
            ("model.safetensors", printed("gpt2-pin-revision"), printed("gpt2-pin-safetensors-sha256")),
        ),
        "census": rows(
            "tensor family storage counted_parameters",
            ("wte.weight", "token_embedding", "wte.weight", 38597376),
            ("lm_head.weight", "head", "wte.weight", 0),
            ("wpe.weight", "position_embedding", "wpe.weight", 786432),
        ),
        "block": rows("prompt layer step shape", *shapes),
        "positions": together(
            rows(
                "probe prompt offset score",
                *(("position_norm", "", at, norm) for at, norm in norms.items()),
                ("token_norm", "alice", 0, 1.0),
                ("token_norm", "alice", 17, 2.52),
            ),
            rows(
                "probe prompt offset query_position key_position score",
                ("unrotated", "", 0, None, None, 11.796),
                *(("rotation", "", query - key, query, key, score) for query, key, score in turned),
                model=QWEN3,
            ),
        ),
        "geometry": together(
            rows(
                told,
                ("token_norm", "a", "", 0, None, 1.0),
                ("token_norm", "", "", None, None, 3.96),
                ("position_norm", "", "", None, None, 3.39),
                *(("row", "The", "", at, None, printed(f"gpt2-the-embed-{at}")) for at in range(6)),
                *(("neighbours", " Paris", each, at, cos, None) for at, (each, cos) in enumerate(nearest.items())),
                *(("neighbours", " to", each, at, 0.1, None) for at, each in enumerate(nearest)),
                *(("analogy", sum_of, each, at, cosine, None) for at, (each, cosine) in enumerate(royal.items())),
                *(("analogy_all", sum_of, each, at, 0.7, None) for at, each in enumerate((" king", " queen"))),
                ("pair", " Paris", " France", None, 0.634, None),
                ("pair", " queen", " king", None, 0.657, None),
                ("random", " Paris", "", None, 0.242, None),
            ),
            rows(told, *row_of_to, model=QWEN3),
        ),
    }  # fmt: skip


def decoding() -> dict[str, pl.DataFrame]:
    """`cache`, `timing_summary`, `machine` and `cost`."""
    fed = [" is", " the", " capital", " of", " the", " French"]
    steps = [("capital-france", "decode", step, token, 2e-4, 3e-5, True, 5 + step) for step, token in enumerate(fed)]
    steps.append(("capital-france", "continuation", 1, " x", 8.0, 8.0, False, 99))
    grid = [("decode", context, 1) for context in (8, 128, 512, 1000)]
    grid += [("batch", 64, batch) for batch in (1, 2, 4, 8)] + [("prefill", n, 1) for n in (8, 32, 128, 512, 1000)]
    times = (7, 9.0, 8.0, 10.0, 9.5, 100.0)
    facts = {"processor": "A CPU", "threads": "2", "python": "3.11", "torch": "2.13", "transformers": "5", "numpy": "2"}
    timing = "implementation kind context batch rounds median_ms p10_ms p90_ms repeat_median_ms tokens_per_second"
    return {
        "cache": rows("prompt kind step token max_abs_logit_diff mean_abs_logit_diff top1_agrees cache_tokens", *steps),
        "timing_summary": together(
            rows(timing, *(("tokentrail", *case, *times) for case in grid)),
            rows(timing, *(("transformers eager", kind, 3, 3, 9, *times[1:]) for kind, _, _ in grid)),
        ),
        "machine": rows("fact value", *facts.items()),
        "cost": rows("price_per_hour", (1.0,), (1.0,)),
    }


def quantized() -> dict[str, pl.DataFrame]:
    """`quantization` and `quantization_error`: the published numbers in the schemes of one choice."""
    by_bits = {bits: f"gpt2-bits-{bits}" for bits in (8, 6, 4, 3, 2)}
    by_group = {group: f"gpt2-group-{group}" for group in (16, 32, 128, 1024)}
    families = {"attention.qkv": "c-attn", "attention.out": "attn-c-proj", "ffn.up": "c-fc", "ffn.down": "mlp-c-proj"}
    parts = {part: printed(f"gpt2-family-{name}-kl") for part, name in families.items()} | {"tokens": 4.2970}

    def said(scheme: dict[str, Any]) -> list[tuple[Any, ...]]:
        bits, group = scheme["bits"], scheme["group_size"]
        if scheme["one_at_a_time"]:
            return [(bits, group, part, kl, " the", 0.1, 0.03) for part, kl in parts.items()]
        if scheme["weights"] == ["compute"]:
            return [(bits, group, "compute", 0.1542, " the", 0.121, 0.03)]
        figure = by_bits[bits] if group == 64 else by_group[group]
        likely = printed(f"{figure}-top1-prob") if group == 64 else 0.2
        told = (printed(f"{figure}-kl"), printed(f"{figure}-top1"), likely, printed(f"{figure}-paris-prob"))
        return [(bits, group, "all", *told)]

    answers, errors = [], []
    codes, weights = ([printed(f"gpt2-cfc-{what}-{at}") for at in range(6)] for what in ("code", "sample"))
    for name, scheme in SCHEMES.items():
        right = (scheme["divisor"], scheme["grouping"]) == TAKEN
        wrong = (1, 1, "all", 99.0, " wrong", 0.99, 0.99)
        for row in said(scheme):
            told = row if right else row[:3] + wrong[3:]
            answers.append((name, "simulated", *told, 150.0, 0.2, 0.8, "ok"))
        if name in PAPER.stages.quantization.errors:
            measured = (0.01453, 0.103, 0.04576) if right else (9.0, 9.0, 9.0)
            listed = ", ".join(str(int(code)) for code in codes) if right else "7, 7, 7, 7, 7, 7"
            for tensor in ("layers.0.ffn.up.weight", "layers.1.ffn.up.weight"):
                spread = (0.1412, 4.5877, 32.5, 0.00126) if ".0." in tensor else (9.0, 9.0, 9.0, 0.9)
                kept = ", ".join(map(str, weights)) if ".0." in tensor else "9, 9, 9, 9, 9, 9"
                errors.append((name, tensor, scheme["bits"], scheme["group_size"], *measured, *spread, kept, listed))
    answers.append(("float32", "unquantized", None, None, "", 0.0, " the", 0.085, 0.032, 119.6, 0.0, 1.0, "ok"))
    answers.append(("float32", "unquantized", None, None, "", 0.0, " the", 0.085, 0.032, None, None, None, "skipped"))
    columns = "scheme execution bits group_size families kl top1_token top1_probability target_probability perplexity "
    of_error = "scheme tensor bits group_size mean_abs_error relative_error first_scale std max_abs max_sigma "
    return {
        "quantization": rows(f"{columns} mean_kl top1_agreement status", *answers),
        "quantization_error": rows(f"{of_error} beyond_4_sigma first_weights first_codes", *errors),
    }


@functools.cache
def tables() -> dict[str, pl.DataFrame]:
    """Every table, without rows where nothing published is in it."""
    return {name: schema.create_empty() for name, schema in rooms.schemas().items() if name != "reproduction"} | found()


def found() -> dict[str, pl.DataFrame]:
    names = ("Alice", "Carol", "Mirabel", "Priya", "Wanjiru")
    swapped = [("five-names", "alice", n, 0, f" {n[:3]}" if n == "Mirabel" else f" {n}") for n in names]
    swapped.append(("hundred-names", "alice", "Carol", 9, " no"))
    near = (("alice", 0, 1e-5), ("alice", 1, 3e-5))
    dark = [("capital-france", "mask", 4.9308), ("capital-france", "replace_token", 0.1863), ("cat-sat", "mask", 1.0)]
    return of_tokenizers_and_shapes() | anatomy() | decoding() | quantized() | {
        "next_token": next_token(),
        "distribution": rows(
            "prompt step decoding entropy_bits effective_choices top5_mass tokens_for_90_percent vocabulary",
            ("capital-france", 0, "none", 8.654, 402.84, 0.243321, 1503, 50257),
            ("capital-france", 0, "top-k 5", 1.0, 2.0, 1.0, 4, 5),
            ("capital-france", 1, "none", 2.0, 4.0, 0.8, 40, 50257),
            ("demo-france-japan", 0, "none", 3.09, 8.5, 0.9, 17, 50257),
        ),
        "parity": of_each("prompt position max_abs_logit_diff", dict.fromkeys(SHAPES, near)),
        "parity_layers": rows("prompt layer max_abs_diff", ("capital-france", 0, 0.0), ("capital-france", 1, 1.0)),
        "name_swaps": of_each("set template name rank top1_token", dict.fromkeys(SHAPES, tuple(swapped))),
        "lens": lens(),
        "residual": residual(),
        "mlp": rows(
            "prompt position layer near_zero_fraction negative_fraction max min",
            ("capital-france", 3, 0, 0.9, 0.1, 9.0, -9.0),
            ("capital-france", 4, 0, 0.029, 0.906, 3.65, -0.17),
        ),
        "attention": attention(),
        "mixing": mixing(),
        "long_range": rows("layer mixer state_retention", (0, "mamba2", 0.5), (1, "mamba2", 0.01), model=GRANITE),
        "sink": rows("prompt intervention layer kl", *((p, i, layer, kl) for p, i, kl in dark for layer in range(12))),
        "ablations": ablations(),
        "filler_sweep": filler_sweep(),
    }  # fmt: skip


def run(**changed: pl.DataFrame) -> Run:
    """The run, with some of its tables changed."""
    return Run(tables() | changed, specs(), SCHEMES)
