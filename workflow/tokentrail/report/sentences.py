"""Plain sentences made from measured numbers.

Each function takes the rows that it speaks of and returns markup in which everything that came from a table is
escaped. A function that has nothing to speak of returns empty markup.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import best_and_last, first_leading, full_depth, ordered
from tokentrail.charts.text import printable, probability, size, whole
from tokentrail.report.claims import carried_to_the_end, higher_before, leading, leads_after, overlapping
from tokentrail.report.words import (
    at_layers,
    chip,
    counted,
    every,
    listed,
    percent_of,
    power,
    tally,
    with_probability,
)


def answer(rows: pl.DataFrame) -> Markup:
    """What one model says after one prompt, and where the target stands. `rows`: next_token, one model and prompt."""
    if rows.is_empty():
        return Markup()
    rows = rows.sort("rank")
    first = rows.row(0, named=True)
    targets = rows.filter("is_target")
    target = targets.row(0, named=True) if targets.height else None
    opening = Markup("It continues with {} {}").format(chip(first["token"]), with_probability(first["probability"]))
    if target is None:
        return opening + "."
    if target["rank"] == 0:
        opening += ", the token that was expected"
        if rows.height == 1:
            return opening + "."
        second = rows.row(1, named=True)
        if second["probability"] == first["probability"]:
            return opening + Markup("; {} is exactly as probable.").format(chip(second["token"]))
        return opening + Markup("; next is {} at {}.").format(chip(second["token"]), probability(second["probability"]))
    if target["probability"] == first["probability"]:
        return opening + Markup(", and the expected {} is exactly as probable.").format(chip(target["token"]))
    return opening + Markup(", not with the expected {}, which has rank {} (0 is the first) and {}.").format(
        chip(target["token"]), whole(target["rank"]), with_probability(target["probability"]).removeprefix("with ")
    )


def hits(rows: pl.DataFrame) -> Markup:
    """For how many prompts the target is first. `rows`: next_token, one model; empty for fewer than two prompts."""
    prompts = rows["prompt"].n_unique()
    if prompts < 2:
        return Markup()
    first = rows.filter(pl.col("is_target") & (pl.col("rank") == 0))["prompt"].n_unique()
    which = {0: f"none of the {whole(prompts)} prompts", prompts: every(prompts, "prompt")}
    return Markup("The expected token comes first after {}.").format(
        which.get(first, f"{whole(first)} of the {whole(prompts)} prompts")
    )


def swaps(rows: pl.DataFrame, summary: pl.DataFrame) -> Markup:
    """How often a swapped-in name came first. `rows` and `summary`: name_swaps and its summary, one model."""
    parts = []
    for name in ordered(rows, "set"):
        of_set = rows.filter(pl.col("set") == name)
        names, templates = of_set["name"].n_unique(), of_set["template"].n_unique()
        firsts = of_set.filter(pl.col("rank") == 0).height
        where = "one sentence" if templates == 1 else f"{whole(templates)} sentences"
        part = f"{tally(firsts, of_set.height)} with {counted(names, 'name')} in {where}"
        of_summary = summary.filter(pl.col("set") == name)
        mean = of_summary.filter(pl.col("template") == "all", pl.col("quantity") == "probability")
        if mean.height and names > 1:
            row = mean.row(0, named=True)
            part += (
                f" (mean probability {probability(row['mean'])}, {percent_of(row['level'])} interval over names "
                f"{probability(row['low'])} to {probability(row['high'])}{worst(of_set, of_summary)})"
            )
        parts.append(part)
    if not parts:
        return Markup()
    return Markup("With other names in its place, the name in the sentence is the first answer {}.").format(
        listed(parts)
    )


def worst(rows: pl.DataFrame, summary: pl.DataFrame) -> str:
    """The sentences in which the names come first least often, if sentences differ.

    Those whose intervals reach that of the least are told with it. `rows` and `summary`: one set.
    """
    rates = rows.group_by("template", maintain_order=True).agg(
        firsts=(pl.col("rank") == 0).sum(), cases=pl.len(), rate=(pl.col("rank") == 0).mean()
    )
    if rates["rate"].n_unique() < 2:
        return ""
    intervals = summary.filter(pl.col("quantity") == "top1_rate").select("template", "low", "high")
    known = rates.join(intervals, on="template", how="left", maintain_order="left").with_columns(
        pl.col("low", "high").fill_null(pl.col("rate"))
    )
    least = overlapping(known, "rate", "low", "high").to_dicts()
    if len(least) == 1:
        row = least[0]
        return f"; least often in the sentence {printable(row['template'])}, {tally(row['firsts'], row['cases'])}"
    told = [f"{printable(row['template'])} ({whole(row['firsts'])} of {whole(row['cases'])})" for row in least]
    if len(least) == rates.height:
        return f"; the intervals of the sentences overlap, {listed(told)}"
    return f"; least often in the sentences {listed(told)}, whose intervals overlap"


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


def parity(rows: pl.DataFrame) -> Markup:
    """How close ours and the reference are. `rows`: parity, one model."""
    if rows.is_empty():
        return Markup()
    worst, tolerance = rows["max_abs_logit_diff"].max(), rows["tolerance"].max()
    passed = worst <= tolerance
    verdict = "below" if worst < tolerance else "at" if passed else "above"
    sentence = Markup(
        "Over {} of {}, the largest difference in any logit between this workflow and transformers is {}, "
        "{} the tolerance of {}"
    ).format(
        counted(rows.height, "position"),
        counted(rows["prompt"].n_unique(), "prompt"),
        power(worst),
        verdict,
        power(tolerance),
    )
    return sentence + ("." if passed else ": this model fails the gate, and no number of it should be used.")


def agreement(rows: pl.DataFrame) -> Markup:
    """Whether both name the same first tokens. `rows`: parity, one model."""
    if rows.is_empty():
        return Markup()
    disagreeing = rows.filter(~pl.col("top1_agrees")).height
    if disagreeing == 0:
        return Markup("Both name the same first token at every position.")
    return Markup("They name different first tokens at {} of {}.").format(
        whole(disagreeing), counted(rows.height, "position")
    )


def budget(rows: pl.DataFrame) -> Markup:
    """The error budget in words. `rows`: parity, one model."""
    if rows.is_empty():
        return Markup()
    ours, reference = rows["max_abs_error_ours"].max(), rows["max_abs_error_reference"].max()
    return Markup(
        "Against the same pass in float64, float32 rounding alone moves this workflow by up to {} and transformers by "
        "up to {}; the largest logit is {}."
    ).format(power(ours), power(reference), size(rows["max_abs_logit"].max()))


def cut(rows: pl.DataFrame) -> Markup:
    """How a prompt is cut. `rows`: tokens, one model and prompt."""
    if rows.is_empty():
        return Markup()
    added = rows.filter("special").height
    sentence = counted(rows.height, "token")
    if added:
        sentence += f", {whole(added)} of them added by the tokenizer"
    return Markup("{}.").format(sentence)


def growth(rows: pl.DataFrame) -> Markup:
    """How the stream grows at the last position. `rows`: residual at the last position, one model and prompt."""
    stream = rows.filter(pl.col("site") == "resid_post").sort("layer")
    if stream.is_empty():
        return Markup()
    first, last = stream.row(0, named=True), stream.row(-1, named=True)
    if stream.height == 1:
        return Markup("The stream's length after its one layer is {}.").format(size(first["l2_norm"]))
    peak = leading(stream, "l2_norm").row(-1, named=True)
    sentence = Markup("The stream's length goes from {} after layer {} to {} after layer {}").format(
        size(first["l2_norm"]), first["layer"], size(last["l2_norm"]), last["layer"]
    )
    if peak["layer"] == last["layer"]:
        return sentence + ", where it is largest."
    return sentence + Markup("; it is largest after layer {}, at {}.").format(peak["layer"], size(peak["l2_norm"]))
