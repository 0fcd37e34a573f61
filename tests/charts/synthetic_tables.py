"""Tables that fit their schemas, for models that do not exist, with text that tries to break out of a page."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
from tokentrail.tables import TABLES

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


def settings(models: int = 1, prompts: tuple[str, ...] = PROMPTS) -> dict[str, Any]:
    notes = ["Q4_1 <b>weights</b>", "", "", ""]
    labels = ["Alpha </script> 1", "Beta", "Beta", 'Delta "D"']
    return {
        "title": "A </title><script>alert(1)</script> title",
        "run": "synthetic",
        "models": {
            name: {"label": labels[index], "weights_note": notes[index]}
            for index, name in enumerate(list(DEPTHS)[:models])
        },
        "prompts": {
            name: {"text": f"Text of {name} {HOSTILE[index]}\nsecond line", "target": " Alice"}
            for index, name in enumerate(prompts)
        },
    }


def tables(models: int = 1, prompts: tuple[str, ...] = PROMPTS) -> dict[str, pl.DataFrame]:
    """All tables, for the first `models` models; each is checked against its schema."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for index, model in enumerate(list(DEPTHS)[:models]):
        for table, made in of_model(index, DEPTHS[model], prompts).items():
            rows[table] += [{"model": model} | row for row in made]
    return {table: TABLES[table].validate(pl.DataFrame(made), cast=True) for table, made in rows.items()}


def empty() -> dict[str, pl.DataFrame]:
    return {table: schema.create_empty() for table, schema in TABLES.items()}


def of_model(index: int, depth: int, prompts: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
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
            {"file": "model.gguf", "bytes": 1000, "sha256": "0" * 64, "role": "source", "source_kind": "package"}
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
            | {"byte_end": position + 1, "special": position == 0, "bos_policy": "added"}
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
        "distribution": [
            {"prompt": prompt, "entropy_bits": 1.5, "effective_choices": 2.0**1.5, "top5_mass": 0.9}
            | {"tokens_for_90_percent": 5, "vocabulary": 100}
            for _, prompt in by_prompt
        ],
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
            {"prompt": prompt, "variant": "as_trained", "layer": layer, "site": site, "entropy_bits": 1.0}
            | {"target_probability": 0.9 * layer / depth, "target_rank": lens_rank(number, layer, depth)}
            | {"top1_token": HOSTILE[layer], "top1_probability": 0.5, "kl_to_final": 0.0}
            for number, prompt in by_prompt
            for layer in range(depth)
            for site in ("resid_mid", "resid_post")
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
