"""`ablations`: every part switched off in a pass of its own, by every operation."""

from __future__ import annotations

import torch
from column_checks import recomputes
from definitions import answer_columns, kl, last_logits, ranges, seen, softmax
from tiny_models import PROMPTS
from tokentrail.stages.ablations import measure as ablations

OTHER = "In the morning, Carol gave Tom a key. Later, Tom gave the key back to Bob."
TEXTS = {name: prompt["text"] for name, prompt in PROMPTS.items()} | {"other": OTHER}


@recomputes(
    "ablations",
    *("prompt", "component", "mixer", "layers", "heads", "operation", "target_probability", "target_rank"),
    *("top1_token", "top1_probability", "kl", "planned_edits", "applied_edits"),
    key=("prompt", "component", "layers", "heads", "operation"),
)
def test_ablations(tiny):
    same_length = {"mirabel": cut_to(tiny, OTHER, len(tiny.ids(TEXTS["mirabel"])))}
    texts = TEXTS | {"same": same_length["mirabel"]}
    means = mean_values(tiny, [texts["france"], texts["other"]])
    rows = []
    for prompt, ids, target in tiny.prompts():
        clean = last_logits(tiny.model, ids)
        nothing = {"component": "clean", "mixer": "", "layers": "", "heads": "", "operation": "none"}
        rows.append(row(tiny, prompt, target, clean, clean, nothing, 0))
        put = {"zero": lambda at, tensor: torch.zeros_like(tensor), "mean": lambda at, tensor: means[at]}
        if prompt in same_length:
            values = seen(tiny.model, tiny.ids(texts["same"]), "z", "ffn_out")
            put["resample"] = lambda at, tensor, values=values: values[at]
        for operation, value in put.items():
            for component, mixer, site, layers, head in parts(tiny):
                change = {(site, i): replaced(value, (site, i), head) for i in layers}
                about = {
                    "component": component,
                    "mixer": mixer,
                    "layers": ranges(layers),
                    "heads": "" if head is None else str(head),
                    "operation": operation,
                }
                rows.append(row(tiny, prompt, target, clean, last_logits(tiny.model, ids, change), about, len(layers)))
    settings = tiny.settings(
        operations=["zero", "mean", "resample"],
        references=["france", "other"],
        resample_from={"mirabel": "same"},
        texts=texts,
        memory_mb=64,
    )
    return ablations.measure(tiny.loaded, settings), rows


def cut_to(tiny, text, length):
    """The longest beginning of a text that is that many tokens."""
    return next(text[:end] for end in range(len(text), 0, -1) if len(tiny.ids(text[:end])) == length)


def row(tiny, prompt, target, clean, changed, about, edits):
    return (
        {"prompt": prompt}
        | about
        | answer_columns(tiny, changed, target)
        | {"kl": kl(softmax(clean), softmax(changed)), "planned_edits": edits, "applied_edits": edits}
    )


def parts(tiny):
    """Component, mixer, site, layers and head of everything that is switched off."""
    kinds = tiny.kinds
    for i, kind in enumerate(kinds):
        yield "mixer", kind, "z", [i], None
        yield "ffn", "", "ffn_out", [i], None
        for head in range(4):  # every mixer of the tiny models has four
            yield "head", kind, "z", [i], head
    for kind in set(kinds):
        yield f"all {kind}", kind, "z", [i for i, k in enumerate(kinds) if k == kind], None
    mamba2 = [i for i, kind in enumerate(kinds) if kind == "mamba2"]
    for first in mamba2:
        yield f"mamba2 from layer {first}", "mamba2", "z", [i for i in mamba2 if i >= first], None


def replaced(value, at, head):
    def change(tensor):  # (1, heads, tokens, head_dim) or (1, tokens, width)
        new = tensor.clone()
        if head is None:
            new[0] = value(at, tensor[0])
        else:
            new[0, head] = value(at, tensor[0])[head]
        return new

    return change


def mean_values(tiny, texts):
    """The mean of each site over all positions of the texts but each first: (heads, 1, head_dim) or (1, width)."""
    total, count = {}, 0
    for text in texts:
        ids = tiny.ids(text)
        count += len(ids) - 1
        for at, tensor in seen(tiny.model, ids, "z", "ffn_out").items():
            for position in range(1, len(ids)):
                total[at] = total.get(at, 0) + tensor[..., position : position + 1, :]
    return {at: value / count for at, value in total.items()}
