"""Tables that fit their schemas, for models that do not exist, with text that tries to break out of a page."""

from __future__ import annotations

import functools
import math
from typing import Any

import polars as pl
import synthetic_anatomy
from synthetic_quantization import of_quantization
from tokentrail.rooms import schemas

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    ' "quoted"',
    " it's",
    "\n",
    "\\n",
    "\u202eabc",
    "שלום",
    "👩\u200d💻",
    "{{ 7 * 7 }}",
    "datum.x",
    "]]>",
    "&amp;",
    "\u2028",
)
PROMPTS = ("alice", "capital", "odd")
DEPTHS = {"alpha": 6, "beta": 4, "gamma": 6, "delta": 5}
# Attention only, attention and Mamba2, attention only with few positions, and Mamba2 only.
ATTENTION_LAYERS = {"alpha": set(range(6)), "beta": {2}, "gamma": set(range(6)), "delta": set()}
ATTENTION_HEADS, MAMBA2_HEADS = 2, 3


def settings(models: int = 1, prompts: tuple[str, ...] = PROMPTS) -> dict[str, Any]:
    notes = ["Q4_1 <b>weights</b>", "", "", ""]
    put_in = ["Taught <script>alert(1)</script> by heart", "", "", ""]
    labels = ["Alpha </script> 1", "Beta", "Beta", 'Delta "D"']
    return {
        "title": "A </title><script>alert(1)</script> title",
        "run": "synthetic",
        "ledgers": ["published.csv"],
        "models": {
            name: {"label": labels[index], "weights_note": notes[index], "training_note": put_in[index]}
            for index, name in enumerate(list(DEPTHS)[:models])
        },
        "prompts": {
            name: {"text": f"Text of {name} {HOSTILE[index]}\nsecond line", "target": " Alice"}
            for index, name in enumerate(prompts)
        },
        "fillers": {f"town {HOSTILE[0]}": f"Rain {HOSTILE[1]} fell.", "people": "Martin was reading."},
        "experiments": {
            "capital": {
                "template": f"{{example}}{{wording}} {HOSTILE[1]}",
                "target": " Alice",
                "factors": {"example": {"none": "", "one": HOSTILE[0]}, "wording": {"short": "a", "long": "b"}},
            }
        },
    }


def tables(models: int = 1, prompts: tuple[str, ...] = PROMPTS) -> dict[str, pl.DataFrame]:
    """All tables, for the first `models` models; each is checked against its schema."""
    return dict(made(models, prompts))


@functools.cache
def made(models: int, prompts: tuple[str, ...]) -> dict[str, pl.DataFrame]:
    """What `tables` hands out, made once."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in schemas()}
    for index, model in enumerate(list(DEPTHS)[:models]):
        depth, attention = DEPTHS[model], ATTENTION_LAYERS[model]
        made_of_model = of_model(index, depth, 0 < len(attention) < depth, prompts) | of_parts(model, prompts)
        made_of_model |= of_time(index, model, prompts) | of_quantization(model, prompts[0])
        made_of_model |= synthetic_anatomy.of_anatomy(model, prompts, depth, attention, HOSTILE)
        for table, own in made_of_model.items():
            rows[table] += [{"model": model} | row for row in own]
        rows["reproduction"] += figures(model)
    return {table: schemas()[table].validate(frame(table, own), cast=True) for table, own in rows.items()}


def figures(model: str) -> list[dict[str, Any]]:
    """Published figures of a model, one of each kind and status, and some that no model has."""
    judged = {"tolerance_kind": "abs", "tolerance": 0.0005, "unit": "probability", "stage": "next_token"}
    text = {"tolerance_kind": "exact", "tolerance": None, "unit": "token", "stage": "lens"}
    text |= {"published_value": None, "measured_value": None}
    number = {"published": "0.776", "published_value": 0.776}
    rows = [
        judged | number | {"quantity": "p1", "measured": "0.7762", "measured_value": 0.7762, "status": "reproduced"},
        judged | number | {"quantity": "p2", "measured": "0.012", "measured_value": 0.012, "status": "differs"},
        text | {"quantity": "t1", "published": HOSTILE[0], "measured": HOSTILE[0], "status": "reproduced"},
        text | {"quantity": "t2", "published": " the", "measured": HOSTILE[1], "status": "differs"},
        text | number | {"quantity": "ms", "measured": "3", "measured_value": 3.0, "tolerance_kind": "report"}
        | {"status": "shown"},
        text | {"quantity": "n", "published": "5", "measured": "", "status": "not_run"},
    ]  # fmt: skip
    notes = {"not_run": "the run has no model llama", "differs": HOSTILE[0]}
    return [
        {"model": model, "id": f"{model}-{row['quantity']}", "input": "alice", "note": notes.get(row["status"], "")}
        | row
        for row in rows
    ]


def frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None) if rows else schemas()[table].create_empty()


def empty() -> dict[str, pl.DataFrame]:
    return {table: schema.create_empty() for table, schema in schemas().items()}


def of_model(index: int, depth: int, hybrid: bool, prompts: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    by_prompt = [(number, prompt) for number, prompt in enumerate(prompts)]
    summaries = [
        {"set": name, "template": template, "rows": rows, "names": names, "quantity": quantity}
        | {"mean": 0.6, "low": 0.5, "high": 0.7, "level": 0.95}
        for name, names, templates in (("five", 5, 1), ("broad", 20, 2))
        for template, rows in [*((f"t{t}", names) for t in range(templates)), ("all", names * templates)]
        for quantity in ("probability", "name_nll", "top1_rate")
    ]
    return {
        "weights": [
            {"file": "model.gguf", "bytes": 1000, "sha256": "0" * 64, "role": "source", "changes": ""}
            | {"source_kind": "package"}
            | {"source": "a-package", "revision": "1.0", "license": "", "stored_dtype": "Q4_1", "pinned": "config"}
        ],
        "cells": [
            {"part": "size", "cell": "layers", "layers": "", "detail": str(depth)},
            {"part": "norm", "cell": "rmsnorm" if index % 2 == 0 else "layernorm", "layers": "", "detail": "eps 1e-05"},
            {"part": "mixer", "cell": "attention", "layers": f"0-{depth - 1}", "detail": "4 heads <i>"},
        ],
        "census": [
            {"tensor": f"t.{family}", "shape": "4x4", "stored_dtype": "F32", "parameters": 16, "storage": family}
            | {"counted_parameters": 0 if family == "head" else 16, "stored_bytes": 64, "family": family}
            | {"family_share": 0.0 if family == "head" else 0.5}
            for family in ("token_embedding", "ffn", "head")
        ],
        "tokens": [
            {"prompt": prompt, "position": position, "token_id": position, "token": token, "byte_start": position}
            | {"byte_end": position + 1, "special": position == 0, "bos_policy": "added", "note": ""}
            for _, prompt in by_prompt
            for position, token in enumerate(HOSTILE)
        ],
        "parity": [
            {"prompt": prompt, "position": position, "max_abs_logit_diff": (0.0 if number else 6.6e-5) * (position + 1)}
            | {"mean_abs_logit_diff": 1e-5, "top1_agrees": True, "max_abs_error_ours": 9e-5, "tolerance": 1e-3}
            | {"max_abs_error_reference": 5e-5, "max_abs_logit": 30.4}
            for number, prompt in by_prompt
            for position in range(3)
        ],
        "parity_layers": [
            {"prompt": prompt, "layer": layer, "site": site, "max_abs_diff": 1e-6 * layer, "max_abs_value": 3.0}
            for _, prompt in by_prompt
            for layer in range(depth)
            for site in ("mixer_out", "ffn_out", "resid_post")
        ],
        "next_token": [
            {"prompt": prompt, "rank": rank, "token_id": rank, "token": token, "logit": 3.0 - rank, "nll": 1.0}
            | {"probability": 0.5 ** (rank + 1), "is_target": rank == (0 if number == 0 else 11)}
            for number, prompt in by_prompt
            for rank, token in enumerate([" Alice", *HOSTILE])
        ],
        "distribution": synthetic_anatomy.distribution(prompts, HOSTILE),
        "name_swaps": [
            {"set": name, "template": f"t{template}", "name": f"Name{number} {HOSTILE[number % 3]}", "pieces": 1}
            | {"target_token": f" Name{number}", "probability": number / (names + 1), "rank": 0 if number > 1 else 7}
            | {"top1_token": HOSTILE[number % len(HOSTILE)], "top1_probability": 0.5, "name_nll": 1.0}
            for name, names, templates in (("five", 5, 1), ("broad", 20, 2))
            for template in range(templates)
            for number in range(names)
        ],
        "name_swaps_summary": summaries,
        "lens": [
            {"prompt": prompt, "variant": variant, "layer": layer, "site": site, "entropy_bits": 1.0}
            | {
                "target_probability": (0.9 if variant == "as_trained" else 0.3) * layer / depth,
                "target_rank": lens_rank(number, layer, depth),
            }
            | {"top1_token": HOSTILE[layer], "top1_probability": 0.5, "kl_to_final": 0.0}
            for number, prompt in by_prompt
            for layer in range(depth)
            for site in ("resid_mid", "resid_post")
            for variant in (("as_trained", "attention_off") if hybrid else ("as_trained",))
        ],
        "residual": [
            {"prompt": prompt, "position": position, "layer": layer, "site": site, "l2_norm": 3.0 * math.exp(layer / 2)}
            | {"rms": 0.5, "mean": 0.0}
            for _, prompt in by_prompt
            for position in range(2)
            for layer in range(depth)
            for site in ("resid_post", "mixer_out", "ffn_out")
        ],
    }


def lens_rank(number: int, layer: int, depth: int) -> int:
    """The first prompt's target leads at the end, the last prompt's never does."""
    return (0 if layer >= depth - 2 else 1000 // (layer + 1)) if number == 0 else 5000


def of_parts(model: str, prompts: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """The tables of the interventions, on the first prompt, whose tokens are HOSTILE."""
    prompt, other = prompts[0], prompts[-1]
    depth, attention = DEPTHS[model], ATTENTION_LAYERS[model]
    layers = [(layer, "attention" if layer in attention else "mamba2") for layer in range(depth)]
    heads = [
        (layer, mixer, head)
        for layer, mixer in layers
        for head in range(ATTENTION_HEADS if mixer == "attention" else MAMBA2_HEADS)
    ]
    length = len(HOSTILE)
    weights = [
        {"prompt": prompt, "layer": layer, "mixer": mixer, "head": head, "query_position": q, "key_position": k}
        | {"weight": (0.7 if k == 0 else 0.3 / q) if mixer == "attention" and q else 0.1 - 0.02 * k}
        for layer, mixer, head in heads
        for q in range(length)
        for k in range(q + 1)
    ]
    return {
        "ablations": ablations(prompt, layers, heads),
        "filler_sweep": [
            {"filler": f"town {HOSTILE[0]}", "repeats": n, "tokens": 18 + 90 * n, "distance": 13 + 90 * n}
            | {"variant": variant, "status": "exceeds_positions" if beyond else "ok", "beyond_context": beyond}
            | {"reason": "378 tokens, but the model has 256 positions" if beyond else ""}
            | {"target_probability": None if beyond else p, "target_rank": None if beyond else int(p < 0.3)}
            | {"top1_token": None if beyond else HOSTILE[n], "top1_probability": None if beyond else 0.5}
            for n in (0, 1, 4)
            for variant, p in (
                ("as_trained", 0.8 - 0.1 * n),
                ("attention_off", 0.8 if n == 0 and not attention else 0.2),
            )
            for beyond in [model == "gamma" and n == 4]
        ],
        "long_range": [
            {"filler": filler, "repeats": n, "tokens": 18 + 90 * n, "distance": 13 + 90 * n, "layer": layer}
            | {"mixer": mixer, "head": head, "attention_to_name": 0.3 / (n + 1) if mixer == "attention" else None}
            | {"state_retention": None if mixer == "attention" else 0.9 ** (90 * n * (head + 1))}
            for filler in (f"town {HOSTILE[0]}", "people")
            for n in (0, 1, 4)
            for layer, mixer, head in heads
        ],
        "patching": [
            {"prompt": prompt, "source_prompt": other, "site": site, "mixer": mixer, "layer": layer}
            | {"position": position, "token": HOSTILE[position], "recovered": 1.3 if position == 2 else -0.04}
            for site in ("resid_pre", "mixer_out", "ffn_out", "ssm_state")
            for layer, mixer in layers
            for position in range(2, length)
            if site != "ssm_state" or mixer == "mamba2"
        ],
        "attribution": attribution(prompt, layers, heads),
        "mixing": weights,
        "attention": [
            {"prompt": prompt, "layer": layer, "head": head, "argmax_position": head, "argmax_token": HOSTILE[head]}
            | {"argmax_weight": 0.7, "entropy_bits": 1.0, "weight_on_first": 0.7}
            for layer, mixer, head in heads
            if mixer == "attention"
        ],
        "sink": [
            {"prompt": name, "intervention": intervention, "layer": layer, "weight_on_first": 0.1 + 0.1 * layer}
            | {"kl": kl, "target_probability": 0.5, "last_weight_on_first": 0.2 + 0.1 * layer, "target_rank": 0}
            | {"top1_token": HOSTILE[0] if kl > 1 else " Alice", "top1_probability": 0.5}
            for name in prompts
            for intervention, kl in SINK_KL.items()
            for layer in sorted(attention)
        ],
    }


SINK_KL = {"none": 0.0, "mask": 2.0, "drop_value": 0.4, "renormalise": 3.0, "replace_token": 0.02}


def ablations(prompt: str, layers: list, heads: list) -> list[dict[str, Any]]:
    """Layer 0 matters when it is set to zero, everything else does not; whole kinds of layers do."""

    def row(component, mixer, changed, head, operation, p):
        return {
            "prompt": prompt,
            "component": component,
            "mixer": mixer,
            "layers": ", ".join(map(str, changed)),
            "heads": head,
            "operation": operation,
            "target_probability": p,
            "target_rank": 0 if p > 0.1 else 40,
            "top1_token": " Alice" if p > 0.1 else HOSTILE[0],
            "top1_probability": 0.6,
            "kl": 0.1,
            "planned_edits": len(changed),
            "applied_edits": len(changed),
        }

    rows = [row("clean", "", [], "", "none", 0.8)]
    for operation in ("zero", "mean", "resample"):
        hard = operation == "zero"
        rows += [row("mixer", mixer, [i], "", operation, 0.01 if hard and i == 0 else 0.7) for i, mixer in layers]
        rows += [row("ffn", "", [i], "", operation, 0.75 - 0.01 * i) for i, _ in layers]
        rows += [row("head", mixer, [i], str(h), operation, 0.9 if h else 0.6 if i else 0.05) for i, mixer, h in heads]
        for kind in ("attention", "mamba2"):
            of_kind = [i for i, mixer in layers if mixer == kind]
            if of_kind:
                rows.append(row(f"all {kind}", kind, of_kind, "", operation, 0.002))
        mamba2 = [i for i, mixer in layers if mixer == "mamba2"]
        rows += [
            row(f"mamba2 from layer {start}", "mamba2", mamba2[place:], "", operation, 0.002 if place < 1 else 0.5)
            for place, start in enumerate(mamba2)
        ]
    return rows


def attribution(prompt: str, layers: list, heads: list) -> list[dict[str, Any]]:
    def row(layer, site, head, mixer, target, rival):
        return {
            "prompt": prompt,
            "layer": layer,
            "site": site,
            "head": head,
            "mixer": mixer,
            "target_token": " Alice",
            "rival_token": HOSTILE[0],
            "target_logit_contribution": target,
            "rival_logit_contribution": rival,
        }

    return [
        row(0, "embed", None, "", 0.5, 1.0),
        *(row(layer, "z", head, mixer, 1.0 + 0.1 * layer + head, 0.5) for layer, mixer, head in heads),
        *(row(layer, "ffn_out", None, "", 0.5, 1.5) for layer, _ in layers),
    ]


def of_time(index: int, model: str, prompts: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """The cache's tables and the timed ones; transformers is timed beside the first two models only."""
    mamba2 = DEPTHS[model] - len(ATTENTION_LAYERS[model])
    kv, state = 512 * len(ATTENTION_LAYERS[model]), 2048 * mamba2
    apart = {"max_abs_logit_diff": 2e-5, "mean_abs_logit_diff": 3e-6, "top1_agrees": True}
    errors = {"max_abs_error_ours": 3e-5, "max_abs_error_ours_full": 2e-5}
    theirs = {"max_abs_error_reference": 4e-2 if mamba2 else 3e-5, "max_abs_error_reference_full": 2e-5}
    theirs |= {"reference_max_abs_logit_diff": 4e-2 if mamba2 else 2e-5, "reference_mean_abs_logit_diff": 3e-6}
    calls = {
        ("decode", 1): [4, 1, 1],
        ("chunked_prefill", 3): [3, 1],
        ("chunked_prefill", 4): [4],
        ("continuation", 2): [4, 2],
        ("batch", 1): [4, 1, 1],
    }
    cache = [
        {"prompt": prompt, "kind": kind, "piece": piece, "step": step, "token": HOSTILE[step], "tokens": tokens}
        | (apart | errors | theirs | {"reference_top1_agrees": mamba2 == 0})
        | {"cache_tokens": read, "kv_bytes": kv * read, "conv_bytes": 64 * mamba2, "state_bytes": state}
        | {"formula_bytes": kv * read + 64 * mamba2 + state, "reserved_bytes": kv * 6 + 64 * mamba2 + state}
        for prompt in prompts[:2]
        for (kind, piece), sizes in calls.items()
        for step, tokens in enumerate(sizes)
        for read in [sum(sizes[: step + 1])]
    ]
    names = ["tokentrail", *(["transformers eager", "transformers sdpa"] if index < 2 else [])]
    cases = [("decode", context, 1) for context in (8, 128, 1000)] + [("prefill", n, 1) for n in (8, 128)]
    cases += [("batch", 64, rows) for rows in (1, 2, 8)]
    summary = [
        timed_case(index, name, kind, context, batch, beyond=model == "gamma" and context == 1000)
        for name in names
        for kind, context, batch in cases
    ]
    ok = [row for row in summary if row["status"] == "ok" and row["implementation"] == "tokentrail"]
    facts = {"processor": f"Processor {HOSTILE[0]}", "threads": "2", "torch": "2.13.0", "cores": "2"}
    return {
        "cache": cache,
        "timing_summary": summary,
        "machine": [{"fact": fact, "value": value} for fact, value in facts.items()],
        "cost": [
            {name: row[name] for name in ("kind", "context", "batch", "tokens_per_second")}
            | {"price_per_hour": 1.0, "occupancy": occupancy, "step_latency_ms": row["median_ms"]}
            | {"dollars_per_million_tokens": 1e6 / (3600 * occupancy * row["tokens_per_second"])}
            for row in ok
            for occupancy in (1.0, 0.5)
        ],
    }


def timed_case(index: int, name: str, kind: str, context: int, batch: int, beyond: bool) -> dict[str, Any]:
    median = (20.0 + 5 * index + 3 * batch + context / (2 if kind == "prefill" else 100)) * (1 + 0.4 * len(name) / 17)
    tokens = context if kind == "prefill" else batch
    rate = 1000 * tokens / median
    row = {
        "median_ms": median,
        "low_ms": median * 0.9,
        "high_ms": median * 1.2,
        "level": 0.984375,
        "p10_ms": median * 0.9,
        "p90_ms": median * 1.2,
        "min_ms": median * 0.8,
        "max_ms": median * 1.5,
        "repeat_median_ms": median * 1.1,
        "drift": 0.1,
        "tokens_per_second": rate,
        "parameter_bytes_per_second": rate * 4e8,
        "least_bytes_per_second": 4e11 / median,
        "achieved_flops": rate * 2e8,
        "intensity": tokens / 2,
        "fraction_of_peak": rate * 2e8 / 2e11,
        "fraction_of_bandwidth": 4e11 / median / 4e10,
    }
    return {
        **(dict.fromkeys(row) if beyond else row),
        **{"implementation": name, "kind": kind, "context": context, "batch": batch, "rounds": 0 if beyond else 7},
        **{"matrix_peak": 2e11, "read_bandwidth": 4e10, "threads": 2, "status": "skipped" if beyond else "ok"},
        "reason": "1008 tokens, but the model has 1000 positions" if beyond else "",
    }
