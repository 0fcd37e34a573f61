"""Rows of the tables that take models apart, for models that do not exist: one with rotation, one hybrid without any
position encoding, one with a table of positions, and one of Mamba2 layers whose tokenizer is no byte-level BPE."""

from __future__ import annotations

from itertools import product
from typing import Any

Rows = list[dict[str, Any]]
Texts = tuple[str, ...]
WORDS = {"king": ("k i n g", "ki n g", "ki ng", "king"), " king": ("Ġ k i n g", "Ġk i n g", "Ġk ing"), "안": ("ì ķ Ī",)}
STEPS = [
    ("token rows", ""),
    ("stream entering", "resid_pre"),
    ("norm before the mixer", "mixer_in"),
    ("update", "mixer_out"),
    ("stream after the mixer", "resid_mid"),
    ("norm before the FFN", "ffn_in"),
    ("FFN update", "ffn_out"),
    ("stream leaving", "resid_post"),
]


def of_anatomy(model: str, prompts: Texts, depth: int, attention: set[int], hostile: Texts) -> dict[str, Rows]:
    kinds = {("attention" if layer in attention else "mamba2"): layer for layer in reversed(range(depth))}
    return {
        "merges": [] if model == "delta" else merges(prompts),
        "geometry": geometry(hostile, several=model == "beta"),
        "positions": positions(model, prompts),
        "block": [
            {"prompt": prompt, "layer": layer, "mixer": mixer, "order": order, "step": step, "site": site}
            | {"shape": "1x5x8", "l2_norm": 1.0 + order, "rms": 0.4, "mean": -0.1, "deviation": 0.3}
            for prompt in prompts
            for mixer, layer in kinds.items()
            for order, (step, site) in enumerate(STEPS)
        ],
        "mlp": [
            {
                "prompt": prompt,
                "layer": layer,
                "position": position,
                "width": 32,
                "near_zero_fraction": 0.1 + 0.02 * layer,
            }
            | {"negative_fraction": 0.9 - 0.1 * layer, "max": 2.0 * (layer + 1), "min": -0.2 * (layer + 1)}
            for prompt in prompts
            for layer in range(depth)
            for position in range(3)
        ],
        "arithmetic": arithmetic(mamba2=len(attention) < depth, attention=bool(attention)),
    }


def merges(prompts: Texts) -> Rows:
    rows = []
    for word, steps in WORDS.items():
        for step, symbols in enumerate(steps):
            made = steps[step - 1].split(" ")
            last = step == len(steps) - 1
            rows.append(
                {"prompt": word, "kind": "word", "bytes": len(word.encode()), "words": 1, "piece": 0, "step": step}
                | {"rank": 10 * step if step else None, "left": made[0] if step else None}
                | {"right": made[1] if step else None, "symbols": symbols}
                | {"token_ids": " ".join(str(n) for n in range(len(symbols.split(" ")))) if last else ""}
            )
    nothing = {"rank": None, "left": None, "right": None}
    return rows + [
        {"prompt": prompt, "kind": "prompt", "bytes": 6, "words": 2, "piece": piece, "step": 0, "symbols": "a b c"}
        | {"token_ids": "1 2 3"}
        | nothing
        for prompt in prompts
        for piece in range(2)
    ]


def geometry(hostile: Texts, several: bool) -> Rows:
    def row(probe: str, token: str, **values: Any) -> dict[str, Any]:
        empty = {"pieces": 1, "neighbour": "", "rank": None, "cosine": None, "deviation": None, "value": None}
        return {"probe": probe, "token": token} | empty | values

    rows = [row("token_norm", hostile[rank], rank=rank, value=1.0 + rank) for rank in range(3)]
    rows += [row("token_norm", "", value=2.5)]
    for word in (" king", " book"):
        rows += [
            row("neighbours", word, neighbour=hostile[rank], rank=rank, cosine=0.8 - 0.1 * rank) for rank in range(4)
        ]
        rows += [row("random", word, cosine=0.1, deviation=0.04), row("row", word, rank=0, value=0.3)]
    rows += [row("pair", " king", neighbour=" queen", cosine=0.6)]
    rows += [row("neighbours", " kingdom come", pieces=3)] if several else []
    rows += [
        row(probe, " king + woman − man", neighbour=hostile[rank + shift], rank=rank, cosine=0.7 - 0.1 * rank)
        for shift, probe in enumerate(("analogy", "analogy_all"))
        for rank in range(2)
    ]
    return rows


def positions(model: str, prompts: Texts) -> Rows:
    empty = {"prompt": "", "query_position": None, "key_position": None}
    match model:
        case "alpha":
            rows = [{"probe": "unrotated", "offset": 0, "score": -11.4}]
            rows += [
                {"probe": "rotation", "offset": q - k, "query_position": q, "key_position": k, "score": score}
                for q, k, score in ((17, 5, 1.25), (112, 100, 1.25001), (17, 16, -10.6))
            ]
            rows += [{"probe": "expected_rotation", "offset": n, "score": 1 / (1 + n)} for n in (0, 1, 10, 300)]
        case "gamma":
            rows = [{"probe": "position_norm", "offset": n, "score": 9.0 / (1 + n)} for n in range(40)]
            rows += [{"probe": "position_cosine", "offset": n, "score": 1 - 0.02 * n} for n in (0, 1, 8, 32)]
            rows += [{"probe": "token_norm", "offset": n, "score": 2.0, "prompt": prompts[0]} for n in range(4)]
        case _:
            rows = []
    return [empty | row for row in rows]


def arithmetic(mamba2: bool, attention: bool) -> Rows:
    same = {"subject": "model", "layers": 1, "rows": 0, "tokens": 0}
    rows: Rows = [
        {"quantity": "parameters", "part": "FFN up", "layers": 6, "value": 32, "formula": "2*4*4"},
        {"quantity": "parameters", "part": "all", "value": 32, "formula": "32"},
        {"quantity": "payload", "part": "float32", "value": 128, "formula": "32*32/8"},
        {"quantity": "payload", "part": "4 bits, group 64", "value": 2**21, "formula": "32*4/8"},
    ]
    for batch, tokens in product((1, 8), (8, 1000)):
        at = {"rows": batch, "tokens": tokens}
        parts = {"FFN up": 2**20 * tokens, "logits": 2**20}
        parts |= {"attention output": 2**18 * tokens, "attention scores": 2**10 * tokens**2} if attention else {}
        parts |= {"Mamba2 convolution": 2**16 * tokens} if mamba2 else {}
        parts["all"] = sum(parts.values())
        rows += [{"quantity": "flops", "part": part, "value": n, "formula": "1"} | at for part, n in parts.items()]
        kept = {"keys and values": 2**14 * tokens} if attention else {}
        kept |= {"states": 2**20} if mamba2 else {}
        rows += [{"quantity": "cache", "part": part, "value": n, "formula": "1"} | at for part, n in kept.items()]
    rows.append(
        {"subject": "big <b>", "quantity": "cache", "part": "keys and values", "tokens": 2048, "rows": 1}
        | {"value": 2**30, "formula": "2*3"}
    )
    return [same | row for row in rows]


def distribution(prompts: Texts, hostile: Texts) -> Rows:
    def row(prompt: str, bits: float, **values: Any) -> dict[str, Any]:
        same = {"experiment": "", "levels": "", "tokens": 5, "step": 0, "decoding": "none", "top1_token": " Alice"}
        same |= {"top1_probability": 0.5, "target_probability": 0.4, "target_rank": 1, "tokens_left": 100}
        shape = {"entropy_bits": bits, "effective_choices": 2.0**bits, "top5_mass": 0.9, "tokens_for_90_percent": 5}
        return {"prompt": prompt, "vocabulary": 100} | same | shape | values

    rows = []
    for prompt in prompts:
        rows.append(row(prompt, 1.5))
        rules = (("temperature 2", 6.0, 100), ("top-k 5", 1.0, 5))
        rows += [row(prompt, bits, decoding=rule, tokens_left=left) for rule, bits, left in rules]
        rows += [row(prompt, 1.0 + step, step=step, tokens=5 + step, top1_token=hostile[step]) for step in (1, 2, 3)]
    for place, (example, wording) in enumerate(product(("none", "one"), ("short", "long"))):
        levels = f"example: {example}, wording: {wording}"
        rows.append(row(f"capital ({levels})", 6.0 - 2 * place + place**2 / 2, experiment="capital", levels=levels))
    return rows
