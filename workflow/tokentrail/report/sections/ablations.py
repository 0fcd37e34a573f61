"""What happens when parts are switched off."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS, OPERATIONS, first_prompt
from tokentrail.charts.text import probability, whole
from tokentrail.report.words import chip, counted, plural, ranges, sentence_case, tally, with_probability

FEW = 3
"""As many exceptions are told one by one; more are counted."""
INSTEAD = {
    "zero": "set to zero",
    "mean": "with the mean over other prompts in place",
    "resample": "with what another prompt puts there",
}


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model that was ablated, sentences and a summary of its first prompt."""
    rows = first_prompt(tables["ablations"])
    found = []
    for index, model in enumerate(settings["models"]):
        of_model = rows.filter(pl.col("model") == model)
        if of_model.is_empty():
            continue
        target = target_of(tables["next_token"], of_model)
        found.append(
            {
                "index": index,
                "prompt": of_model["prompt"][0],
                "says": [said for said in says(of_model, target) if said],
                "parts": summary(of_model),
            }
        )
    return found


def target_of(next_token: pl.DataFrame, rows: pl.DataFrame) -> Markup:
    """The target of the ablated prompt, as a token."""
    here = next_token.filter(
        (pl.col("model") == rows["model"][0]) & (pl.col("prompt") == rows["prompt"][0]) & pl.col("is_target")
    )
    return chip(here["token"][0]) if here.height else Markup("the target")


def says(rows: pl.DataFrame, target: Markup) -> list[Markup]:
    """All sentences on one model and prompt."""
    clean = rows.filter(pl.col("component") == "clean")
    kinds = [kind for kind in MIXERS if kind in set(rows["mixer"])]
    mixers = rows.filter(pl.col("component") == "mixer")
    return [
        unchanged(clean, target),
        *(singles(mixers.filter(pl.col("mixer") == kind), f"{MIXERS[kind]} layer", target) for kind in kinds),
        singles(rows.filter(pl.col("component") == "ffn"), "FFN", target),
        *(
            heads(rows.filter((pl.col("component") == "head") & (pl.col("mixer") == kind)), clean, kind)
            for kind in kinds
        ),
        *(whole_set(rows.filter(pl.col("component") == f"all {kind}"), kind, target) for kind in kinds),
        from_layer(rows.filter(pl.col("component").str.starts_with("mamba2 from")), target),
    ]


def unchanged(clean: pl.DataFrame, target: Markup) -> Markup:
    if clean.is_empty():
        return Markup()
    row = clean.row(0, named=True)
    if row["target_rank"] == 0:
        return Markup("With nothing changed, {} comes first {}.").format(
            target, with_probability(row["target_probability"])
        )
    return Markup("With nothing changed, {} comes first, and {} has rank {}: read what follows with care.").format(
        chip(row["top1_token"]), target, whole(row["target_rank"])
    )


def singles(rows: pl.DataFrame, part: str, target: Markup) -> Markup:
    """Single layers switched off. `rows`: mixers of one kind, or FFNs, with all operations."""
    zero = with_layer(rows.filter(pl.col("operation") == "zero"))
    if zero.is_empty():
        return Markup()
    kept, lost = zero.filter(pl.col("target_rank") == 0), zero.filter(pl.col("target_rank") > 0)
    sentence = Markup("With one {} at a time set to zero, {} stays first {}").format(
        part, target, tally(kept.height, zero.height)
    )
    if kept.height:
        least = kept.sort("target_probability", "layer").row(0, named=True)
        sentence += Markup(", {} or more (least in layer {})").format(
            with_probability(least["target_probability"]), least["layer"]
        )
    sentence += exceptions(lost, target)
    others = []
    for operation in ("mean", "resample"):
        here = with_layer(rows.filter(pl.col("operation") == operation))
        if here.height:
            first = here.filter(pl.col("target_rank") == 0).height
            lost = here.filter(pl.col("target_rank") > 0)
            does = "" if others else "it does "
            others.append(Markup("{}, {}{}{}").format(INSTEAD[operation], does, tally(first, here.height), where(lost)))
    return sentence + (Markup(" {}.").format(sentence_case(Markup("; ").join(others))) if others else Markup())


def exceptions(lost: pl.DataFrame, target: Markup) -> Markup:
    """The end of a sentence on the layers without which the target is not first."""
    if lost.is_empty():
        return Markup(".")
    if lost.height <= FEW:
        cases = [
            Markup("layer {}, without which {} comes first and {} has {}").format(
                row["layer"],
                chip(row["top1_token"]),
                target,
                with_probability(row["target_probability"]).removeprefix("with "),
            )
            for row in lost.to_dicts()
        ]
        opening = "The exception is" if lost.height == 1 else "The exceptions are"
        return Markup(". {} {}.").format(opening, Markup("; and ").join(cases))
    most, times = common(lost)
    return Markup(". It does not in layers {}; there {} comes first most often ({} of {}).").format(
        ranges(lost["layer"].to_list()), chip(most), times, lost.height
    )


def where(lost: pl.DataFrame) -> Markup:
    """`, not in layer 23, where ·Carol comes first`; empty without rows."""
    if lost.is_empty():
        return Markup()
    told = Markup(", not in {} {}").format(plural("layer", lost.height), ranges(lost["layer"].to_list()))
    if lost["top1_token"].n_unique() == 1:
        told += Markup(", where {} comes first").format(chip(lost["top1_token"][0]))
    return told


def heads(rows: pl.DataFrame, clean: pl.DataFrame, kind: str) -> Markup:
    """Single heads of one kind, set to zero."""
    zero = with_layer(rows.filter(pl.col("operation") == "zero"))
    if zero.is_empty() or clean.is_empty():
        return Markup()
    base = clean["target_probability"][0]
    lost = zero.filter(pl.col("target_rank") > 0).height
    least = zero.sort("target_probability", "layer").row(0, named=True)
    sentence = Markup("Of {}, set to zero one at a time, {} another token first.").format(
        counted(zero.height, f"{MIXERS[kind]} head"),
        "none puts" if not lost else f"{whole(lost)} {'puts' if lost == 1 else 'put'}",
    )
    if least["target_probability"] >= base:
        return sentence
    return sentence + Markup(" The probability falls most without head {} of layer {}, from {} to {}.").format(
        least["heads"], least["layer"], probability(base), probability(least["target_probability"])
    )


def whole_set(rows: pl.DataFrame, kind: str, target: Markup) -> Markup:
    """All layers of a kind switched off together, with every operation."""
    order = list(OPERATIONS)
    rows = rows.filter(pl.col("operation").is_in(order)).sort(
        pl.col("operation").replace_strict({name: i for i, name in enumerate(order)}, default=9, return_dtype=pl.Int64)
    )
    if rows.is_empty():
        return Markup()
    cases = [
        Markup("{}, {}").format(
            INSTEAD[row["operation"]],
            Markup("{} stays first {}").format(target, with_probability(row["target_probability"]))
            if row["target_rank"] == 0
            else Markup("{} comes first ({} at {})").format(
                chip(row["top1_token"]), target, probability(row["target_probability"])
            ),
        )
        for row in rows.to_dicts()
    ]
    edits = rows["planned_edits"][0]
    which = f"The one {MIXERS[kind]} layer" if edits == 1 else f"All {whole(edits)} {MIXERS[kind]} layers"
    return Markup("{} off: {}.").format(which, Markup("; ").join(cases))


def from_layer(rows: pl.DataFrame, target: Markup) -> Markup:
    """Mamba2 layers set to zero from some layer on."""
    zero = (
        rows.filter(pl.col("operation") == "zero")
        .with_columns(start=pl.col("component").str.extract(r"(\d+)$").cast(pl.Int64))
        .sort("start", descending=True)
    )
    if zero.is_empty():
        return Markup()
    lost = zero.filter(pl.col("target_rank") > 0)
    if lost.is_empty():
        return Markup("However many of the last Mamba2 layers are set to zero, {} stays first.").format(target)
    stop = lost["start"][0]
    kept = zero.filter(pl.col("start") > stop)
    if kept.is_empty():
        return Markup("With no more than the last Mamba2 layer set to zero, {} already gives way to {}.").format(
            target, chip(lost["top1_token"][0])
        )
    return Markup(
        "Set to zero from a layer to the end, the Mamba2 layers can go from layer {} on ({}); from layer {} on, {} "
        "gives way to {}."
    ).format(
        kept["start"][-1],
        with_probability(kept["target_probability"][-1]).removeprefix("with "),
        stop,
        target,
        chip(lost["top1_token"][0]),
    )


def with_layer(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(layer=pl.col("layers").cast(pl.Int64)).sort("layer", maintain_order=True)


def common(rows: pl.DataFrame) -> tuple[str, int]:
    """The token that most often comes first, and how often."""
    counts = rows.group_by("top1_token", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    return counts.row(0)


def summary(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """One entry for each kind of part and each operation."""
    kinds = [
        *(
            (f"one {MIXERS[kind]} mixer", (pl.col("component") == "mixer") & (pl.col("mixer") == kind))
            for kind in MIXERS
        ),
        ("one FFN", pl.col("component") == "ffn"),
        *((f"one {MIXERS[kind]} head", (pl.col("component") == "head") & (pl.col("mixer") == kind)) for kind in MIXERS),
        *((f"all {MIXERS[kind]}", pl.col("component") == f"all {kind}") for kind in MIXERS),
        ("Mamba2 from a layer on", pl.col("component").str.starts_with("mamba2 from")),
    ]
    found = []
    for name, condition in kinds:
        for operation, words in OPERATIONS.items():
            here = rows.filter(condition & (pl.col("operation") == operation))
            if here.is_empty():
                continue
            least = here.sort("target_probability", maintain_order=True).row(0, named=True)
            lost = here.filter(pl.col("target_rank") > 0)
            place = f"layer {least['layers']}" + (f", head {least['heads']}" if least["heads"] else "")
            found.append(
                {
                    "part": name,
                    "instead": words,
                    "cases": here.height,
                    "kept": here.height - lost.height,
                    "least": least["target_probability"],
                    "at": least["component"].removeprefix("mamba2 ")
                    if "from" in name
                    else place
                    if here.height > 1
                    else "",
                    "most": dict(zip(("token", "times"), common(lost), strict=True)) if lost.height else None,
                    "lost": lost.height,
                }
            )
    return found


def story(rows: pl.DataFrame) -> Markup:
    """One sentence for the top of the page. `rows`: ablations, one model and prompt."""
    clean = rows.filter((pl.col("component") == "clean") & (pl.col("target_rank") == 0))
    zero = rows.filter(pl.col("operation") == "zero")
    singles = with_layer(zero.filter(pl.col("component") == "mixer"))
    if clean.is_empty() or singles.is_empty():
        return Markup()
    lost = singles.filter(pl.col("target_rank") > 0)["layer"].to_list()
    if not lost:
        sentence = Markup("It stays first without any single mixer")
    elif len(lost) <= FEW:
        sentence = Markup("It stays first without any single mixer but {} of {} {}").format(
            "that" if len(lost) == 1 else "those", plural("layer", len(lost)), ranges(lost)
        )
    else:
        sentence = Markup("Without a single mixer it stays first {}").format(
            tally(singles.height - len(lost), singles.height)
        )
    sets = [
        Markup("with all {} off, {}").format(
            MIXERS[kind],
            "it stays first too"
            if row["target_rank"] == 0
            else Markup("{} comes first").format(chip(row["top1_token"])),
        )
        for kind in MIXERS
        for row in zero.filter(pl.col("component") == f"all {kind}").to_dicts()
    ]
    return Markup("; ").join([sentence, *sets]) + "."
