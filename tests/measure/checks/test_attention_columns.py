"""`mixing`, `attention` and `sink`, from queries, keys and Mamba2's own inputs."""

from __future__ import annotations

import math

import torch
from column_checks import recomputes
from definitions import See, answer_columns, entropy_bits, in_order, kl, last_logits, mean, run, seen, softmax
from tokentrail.stages.attention import measure as attention
from tokentrail.stages.mixing import measure as mixing
from tokentrail.stages.sink import measure as sink


@recomputes(
    "mixing",
    *("prompt", "layer", "mixer", "head", "query_position", "key_position", "weight"),
    key=("prompt", "layer", "head", "query_position", "key_position"),
)
def test_mixing(tiny):
    rows = []
    for prompt, ids, _ in tiny.prompts():
        for layer, kind in enumerate(tiny.kinds):
            for head, weights in enumerate(weights_of(tiny, ids, layer)):
                for query, row in enumerate(weights):
                    same = {"prompt": prompt, "layer": layer, "mixer": kind, "head": head, "query_position": query}
                    rows += [same | {"key_position": key, "weight": w} for key, w in enumerate(row)]
    return mixing.measure(tiny.loaded, tiny.settings()), rows


def weights_of(tiny, ids, layer):
    """For each head and query, the weights on the keys up to it."""
    tensors = seen(tiny.model, ids, "q", "k", "conv_out", "dt")
    if tiny.kinds[layer] == "attention":
        q, k = tensors["q", layer].tolist(), tensors["k", layer].tolist()
        scale = tiny.config.get("attention_multiplier", len(q[0][0]) ** -0.5)
        shared = len(q) // len(k)
        return [
            [softmax([scale * dot(q[h][i], k[h // shared][j]) for j in range(i + 1)]) for i in range(len(ids))]
            for h in range(len(q))
        ]
    heads, groups, n = (tiny.config[key] for key in ("mamba_n_heads", "mamba_n_groups", "mamba_d_state"))
    inner = heads * tiny.config["mamba_d_head"]
    conv, dt = tensors["conv_out", layer].tolist(), tensors["dt", layer].tolist()
    found = []
    for h in range(heads):
        group = h // (heads // groups)
        decay = math.exp(tiny.model.layers[layer]["mixer"].cell.A_log[h].item())
        b = [row[inner + group * n : inner + (group + 1) * n] for row in conv]
        c = [row[inner + (groups + group) * n : inner + (groups + group + 1) * n] for row in conv]
        found.append(
            [
                [
                    math.exp(-decay * sum(dt[t][h] for t in range(j + 1, i + 1))) * dt[j][h] * dot(c[i], b[j])
                    for j in range(i + 1)
                ]
                for i in range(len(ids))
            ]
        )
    return found


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


@recomputes(
    "attention",
    *("prompt", "layer", "head", "argmax_position", "argmax_token", "argmax_weight", "entropy_bits"),
    "weight_on_first",
    key=("prompt", "layer", "head"),
)
def test_attention(tiny):
    rows = []
    for prompt, ids, _ in tiny.prompts():
        for layer in (i for i, kind in enumerate(tiny.kinds) if kind == "attention"):
            for head, weights in enumerate(weights_of(tiny, ids, layer)):
                row = weights[-1]
                most = in_order(row)[0]
                rows.append(
                    {
                        "prompt": prompt,
                        "layer": layer,
                        "head": head,
                        "argmax_position": most,
                        "argmax_token": tiny.text_of(ids[most]),
                        "argmax_weight": row[most],
                        "entropy_bits": entropy_bits(row),
                        "weight_on_first": row[0],
                    }
                )
    return attention.measure(tiny.loaded, tiny.settings()), rows


@recomputes(
    "sink",
    *("prompt", "intervention", "layer", "weight_on_first", "last_weight_on_first", "kl", "target_probability"),
    *("target_rank", "top1_token", "top1_probability"),
    key=("prompt", "intervention", "layer"),
)
def test_sink(tiny):
    def edited(edit):
        """The weights of every query but the first, with the share of position 0 changed by `edit`."""

        def change(pattern):
            for head in pattern[0]:
                for row in head[1:]:
                    row[:] = torch.tensor(edit(row.tolist()), dtype=row.dtype)
            return pattern

        return change

    edits = {
        "none": lambda row: row,
        "mask": lambda row: [0.0, *(w / (1 - row[0]) for w in row[1:])],
        "drop_value": lambda row: [0.0, *row[1:]],
        "renormalise": lambda row: [row[0], *(w / (1 - row[0]) for w in row[1:])],
        "replace_token": lambda row: row,
    }
    layers = [i for i, kind in enumerate(tiny.kinds) if kind == "attention"]
    rows = []
    for prompt, ids, target in tiny.prompts():
        clean = softmax(last_logits(tiny.model, ids))
        for intervention, edit in edits.items():
            read = [tiny.bare("Mirabel")[0], *ids[1:]] if intervention == "replace_token" else ids
            tap = See(["pattern"], {("pattern", layer): edited(edit) for layer in layers})
            logits = run(tiny.model, read, tap)[-1].tolist()
            for layer in layers:
                heads = tap.before["pattern", layer][0].tolist()
                rows.append(
                    {
                        "prompt": prompt,
                        "intervention": intervention,
                        "layer": layer,
                        "weight_on_first": mean([row[0] for head in heads for row in head[1:]]),
                        "last_weight_on_first": mean([head[-1][0] for head in heads]),
                        "kl": kl(clean, softmax(logits)),
                    }
                    | answer_columns(tiny, logits, target)
                )
    return sink.measure(tiny.loaded, tiny.settings(replacement="Mirabel")), rows
