"""After which layer the answer stands, in sentences."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import best_and_last, first_leading, full_depth
from tokentrail.charts.text import printable, whole
from tokentrail.wording.claims import carried_to_the_end, higher_before, leads_after
from tokentrail.wording.words import (
    at_layers,
    chip,
    counted,
    every,
    listed,
    tally,
    with_probability,
)


def lens_facts(rows: pl.DataFrame) -> dict[str, Any]:
    """Where the target first leads, and around it. `rows`: lens, one model and prompt; empty without rows.

    `first` is the layer or None, `probability` that of the target there, `before` the most likely token one layer
    earlier, `lost` the later layers after which the target does not lead, `closest` and `closest_rank` the layer of its
    best rank, `last` the last layer.
    """
    depth = full_depth(rows)
    if depth.is_empty():
        return {}
    leading = first_leading(rows)
    first = None if leading.is_empty() else leading["layer"].item()
    before = [] if first is None else depth.filter(pl.col("layer") == first - 1)["top1_token"].to_list()
    closest = depth.sort("target_rank", maintain_order=True).row(0, named=True)
    return {
        "first": first,
        "probability": None if first is None else leading["target_probability"].item(),
        "before": before[0] if before else None,
        "lost": []
        if first is None
        else depth.filter((pl.col("layer") > first) & (pl.col("target_rank") > 0))["layer"].to_list(),
        "closest": closest["layer"],
        "closest_rank": closest["target_rank"],
        "last": depth["layer"].max(),
        "last_rank": depth.row(-1, named=True)["target_rank"],
    }


def lens(rows: pl.DataFrame, prompt: str, patching: pl.DataFrame) -> Markup:
    """After which layer the answer stands: by the lens on every prompt, and by patching where there is a pair.

    `rows`: lens, one model, all prompts; `prompt` is the one that is told by name; `patching`: one model.
    """
    facts = lens_facts(rows.filter(pl.col("prompt") == prompt))
    if not facts:
        return Markup()
    first, last = facts["first"], facts["last"]
    if first is None:
        sentence = Markup(
            "Read after each of its {} by the logit lens, the target never leads; it comes closest after layer {} "
            "(counted from 0), at rank {}"
        ).format(counted(last + 1, "layer"), facts["closest"], whole(facts["closest_rank"]))
    else:
        sentence = Markup("By the logit lens alone, the target first leads after layer {}").format(first)
        if first == last:
            sentence += Markup(", the last one (layers are counted from 0)")
        else:
            sentence += Markup(" (counted from 0; the last is {}), {} there").format(
                last, with_probability(facts["probability"])
            )
        if facts["before"] is not None:
            sentence += Markup("; one layer earlier, {} leads").format(chip(facts["before"]))
        if facts["lost"]:
            told = at_layers(facts["lost"]) if len(facts["lost"]) == 1 else counted(len(facts["lost"]), "later layer")
            sentence += Markup(". It falls behind again after {}").format(told)
    sentence += over_prompts(leads_after(rows))
    return sentence + "." + told_by_patching(carried_to_the_end(patching), rows)


def over_prompts(leads: pl.DataFrame) -> Markup:
    """`; over all 7 prompts it is after layers 0 to 2`, and how many never lead. `leads`: `leads_after`."""
    if leads.height < 2:
        return Markup()
    found, never = leads.drop_nulls("first"), leads.filter(pl.col("first").is_null()).height
    if found.is_empty():
        return Markup("; it does on none of {}").format(counted(leads.height, "prompt"))
    low, high = found["first"].min(), found["first"].max()
    span = f"after layer {low}" if low == high else f"after layers {low} to {high}"
    sentence = Markup("; over {} it is {}").format(every(leads.height, "prompt"), span)
    return sentence + (f", and never on {whole(never)} of them" if never else "")


def told_by_patching(carried: pl.DataFrame, lens_rows: pl.DataFrame) -> Markup:
    """Where the last token holds the name by patching, beside the lens. `carried`: `carried_to_the_end`, one model."""
    first = dict(leads_after(lens_rows).select("prompt", "first").iter_rows())
    told = []
    for pair in carried.to_dicts():
        by_lens, after = first.get(pair["prompt"]), pair["after"]
        names = f"{printable(pair['prompt'])} with values of {printable(pair['source_prompt'])}"
        if after is None:
            told.append(Markup("after none of the layers before the last ({})").format(names))
            continue
        earlier = by_lens is None or after < by_lens
        than = "already " if earlier else "only " if after > by_lens else ""
        where = "in the embedding" if after < 0 else f"after layer {after}"
        told.append(Markup("{}{} ({})").format(than, where, names))
    if not told:
        return Markup()
    return Markup(
        " By patching, the last token’s stream alone takes the answer at least halfway to another name {}."
    ).format(listed(told))


def on_the_way(rows: pl.DataFrame) -> Markup:
    """For how many prompts the target stood higher before the last layer than at the end. `rows`: lens, one model."""
    depth = full_depth(rows)
    compared = best_and_last(depth) if depth.height else depth
    if compared.is_empty():
        return Markup()
    could = higher_before(compared)
    if could.is_empty():
        return Markup("The target ends at rank 0 on {}, so it stood higher on none of them before.").format(
            every(compared.height, "prompt")
        )
    higher = could.filter("higher")
    sentence = Markup(
        "Where the target does not end at rank 0, it stands higher after some layer before the last {}"
    ).format(tally(higher.height, could.height))
    if higher.is_empty():
        return sentence + "."
    told = [
        f"{printable(row['prompt'])}, rank {whole(row['best'])} after layer {row['after']} and {whole(row['last'])} at "
        "the end"
        for row in higher.to_dicts()
    ]
    return sentence + Markup(": {}.").format(Markup("; ").join(told))
