"""Whether decoding with a cache says what recomputation says, and what the cache holds."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import whole
from tokentrail.wording.words import counted, every, listed, power

MANY = 10
"""Where transformers' cached pass is this many times further from its full pass than ours from ours, it is told."""
HELD = pl.col("kv_bytes") + pl.col("conv_bytes") + pl.col("state_bytes")


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, sentences, and the decode steps of its first prompt."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["cache"].filter(pl.col("model") == model)
        if rows.height:
            steps = rows.filter(pl.col("kind") == "decode", pl.col("prompt") == rows["prompt"][0])
            found.append({"index": index, "said": agreement(rows), "bytes": held(rows), "steps": steps.to_dicts()})
    return found


def agreement(rows: pl.DataFrame) -> Markup:
    """How far cached logits are from recomputed ones, ours and transformers'. `rows`: cache, one model."""
    kinds = {
        "decode": "token by token",
        "chunked_prefill": "with the prompt read in pieces",
        "continuation": "with several tokens in one call",
        "batch": "with prompts of unequal length in one batch",
    }
    worst = [
        Markup("{} {}").format(power(here["max_abs_logit_diff"].max()), words)
        for kind, words in kinds.items()
        if (here := rows.filter(pl.col("kind") == kind)).height
    ]
    said = Markup("Logits from the cache differ from recomputed ones by at most {}. ").format(listed(worst))
    parted = rows.filter(~pl.col("top1_agrees")).height
    said += (
        Markup("Both name the same first token in {}. ").format(every(rows.height, "call"))
        if not parted
        else Markup("They name different first tokens in {} of {}. ").format(
            whole(parted), counted(rows.height, "call")
        )
    )
    ours, theirs = rows["max_abs_logit_diff"].max(), rows["reference_max_abs_logit_diff"].max()
    said += Markup("Against recomputation in float64, ours is off by up to {}").format(
        power(rows["max_abs_error_ours"].max())
    )
    if theirs is None:
        return said + Markup("; transformers keeps no cache of a model without attention.")
    said += Markup(" and transformers’ by {}; its own cached pass differs from its full one by up to {}").format(
        power(rows["max_abs_error_reference"].max()), power(theirs)
    )
    if theirs > MANY * ours:
        where = rows.sort("reference_max_abs_logit_diff", descending=True, nulls_last=True, maintain_order=True)
        said += Markup(", {} of {}").format(kinds[where["kind"][0]], where["prompt"][0])
    return said + Markup(".")


def held(rows: pl.DataFrame) -> Markup:
    """What grows with the tokens, what stands still, and whether the sum is the formula's."""
    per_token = rows["kv_bytes"].max() // rows.filter(pl.col("kv_bytes") == rows["kv_bytes"].max())["cache_tokens"][0]
    fixed = rows.select(pl.col("conv_bytes") + pl.col("state_bytes"))["conv_bytes"]
    said = []
    if per_token:
        said.append(Markup("each token adds {} of keys and values").format(counted(per_token, "byte")))
    if fixed.max():
        still = "however many tokens were read" if fixed.n_unique() == 1 else "at most"
        said.append(Markup("convolution windows and states take {} {}").format(counted(fixed.max(), "byte"), still))
    same = rows.filter(pl.col("formula_bytes") == HELD).height
    equal = "in every call" if same == rows.height else f"in only {whole(same)} of {counted(rows.height, 'call')}"
    return Markup("In a row’s cache, {}; the sum equals the formula {}.").format(listed(said), equal)
