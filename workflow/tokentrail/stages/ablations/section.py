"""What happens when parts are switched off."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import MIXERS, OPERATIONS, ordered
from tokentrail.charts.text import printable, probability, whole
from tokentrail.wording.claims import DECIMALS, answered, leading, needed, trailing, way, without_kind
from tokentrail.wording.words import (
    MANY,
    at_layers,
    chip,
    counted,
    every,
    listed,
    sentence_case,
    tally,
    with_probability,
)

FEW = 3
"""As many exceptions are told one by one; more are counted."""
INSTEAD = {
    "zero": "set to zero",
    "mean": "with the mean over other prompts in place",
    "resample": "with what another prompt puts there",
}


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model and prompt that was ablated, sentences and a summary."""
    found = []
    for index, model in enumerate(settings["models"]):
        of_model = tables["ablations"].filter(pl.col("model") == model)
        for prompt in ordered(of_model, "prompt"):
            rows = of_model.filter(pl.col("prompt") == prompt)
            target = target_of(tables["next_token"], rows)
            found.append(
                {
                    "index": index,
                    "prompt": prompt,
                    "says": [said for said in says(rows, target) if said],
                    "parts": summary(rows),
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

    def single(component: str, kind: str, part: str) -> Markup:
        return singles(rows.filter(pl.col("component") == component, pl.col("mixer") == kind), part, target)

    return [
        unchanged(clean, target),
        *(single("mixer", kind, f"{MIXERS[kind]} layer") for kind in kinds),
        single("ffn", "", "FFN"),
        *(single("head", kind, f"{MIXERS[kind]} head") for kind in kinds),
        *(whole_set(rows.filter(pl.col("component") == f"all {kind}"), clean, kind, target) for kind in kinds),
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
    """Single parts switched off, by every operation. `rows`: mixers or heads of one kind, or FFNs."""
    done = [
        (operation, here)
        for operation in OPERATIONS
        if (here := with_layer(rows.filter(pl.col("operation") == operation))).height
    ]
    if not done:
        return Markup()
    (operation, first), *others = done
    kept, lost = first.filter(pl.col("target_rank") == 0), first.filter(pl.col("target_rank") > 0)
    sentence = Markup("With one {} at a time {}, {} stays first {}").format(
        part, INSTEAD[operation], target, tally(kept.height, first.height)
    )
    if kept.height:
        least = trailing(kept, "target_probability")
        sentence += Markup(", {} or more (least in {})").format(
            with_probability(least["target_probability"][0]), place(least)
        )
    sentence += exceptions(lost, target)
    told = []
    for operation, here in others:
        stays = here.filter(pl.col("target_rank") == 0).height
        does = "" if told else "it does "
        left_out = where(here.filter(pl.col("target_rank") > 0))
        told.append(Markup("{}, {}{}{}").format(INSTEAD[operation], does, tally(stays, here.height), left_out))
    return sentence + (Markup(" {}.").format(sentence_case(Markup("; ").join(told))) if told else Markup())


def place(rows: pl.DataFrame) -> str:
    """`layer 3`, `head 2 of layer 0`: where parts are, told one by one if they are few."""
    if rows["heads"][0] == "":
        return at_layers(rows["layer"].to_list())
    if rows.height > MANY:
        return counted(rows.height, "head")
    return str(listed([f"head {row['heads']} of layer {row['layer']}" for row in rows.to_dicts()]))


def exceptions(lost: pl.DataFrame, target: Markup) -> Markup:
    """The end of a sentence on the parts without which the target is not first."""
    if lost.is_empty():
        return Markup(".")
    if lost.height <= FEW:
        cases = [
            Markup("{}, without which {} comes first and {} has {}").format(
                place(lost.slice(at, 1)),
                chip(row["top1_token"]),
                target,
                with_probability(row["target_probability"]).removeprefix("with "),
            )
            for at, row in enumerate(lost.to_dicts())
        ]
        opening = "The exception is" if lost.height == 1 else "The exceptions are"
        return Markup(". {} {}.").format(opening, Markup("; and ").join(cases))
    most, times = common(lost)
    return Markup(". It does not in {}; there {} most often ({} of {}{}).").format(
        place(lost), come_first(most), times, lost.height, " each" if len(most) > 1 else ""
    )


def where(lost: pl.DataFrame) -> Markup:
    """`, not in layer 23, where ·Carol comes first`; empty without rows."""
    if lost.is_empty():
        return Markup()
    told = Markup(", not in {}").format(place(lost))
    tokens = ordered(lost, "top1_token")
    return told + (Markup(", where {}").format(come_first(tokens)) if len(tokens) <= FEW else Markup())


def come_first(tokens: list[str]) -> Markup:
    return Markup("{} {} first").format(
        listed([chip(token) for token in tokens]), "comes" if len(tokens) == 1 else "come"
    )


def whole_set(rows: pl.DataFrame, clean: pl.DataFrame, kind: str, target: Markup) -> Markup:
    """All layers of a kind switched off together, with every operation, beside nothing changed."""
    done = [row for name in OPERATIONS for row in rows.filter(pl.col("operation") == name).to_dicts()]
    if not done:
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
        for row in done
    ]
    beside = f" (with nothing changed, {probability(clean['target_probability'][0])})" if clean.height else ""
    which = sentence_case(every(done[0]["planned_edits"], f"{MIXERS[kind]} layer"))
    return Markup("{} off{}: {}.").format(which, beside, Markup("; ").join(cases))


def from_layer(rows: pl.DataFrame, target: Markup) -> Markup:
    """Mamba2 layers switched off from some layer on, by every operation."""
    started = rows.with_columns(start=pl.col("component").str.extract(r"(\d+)$").cast(pl.Int64))
    told = [
        Markup("{}, {}").format(INSTEAD[operation], how_many(here, target))
        for operation in OPERATIONS
        if (here := started.filter(pl.col("operation") == operation).sort("start", descending=True)).height
    ]
    if not told:
        return Markup()
    return Markup("With the Mamba2 layers from some layer to the end off: {}.").format(Markup("; ").join(told))


def how_many(rows: pl.DataFrame, target: Markup) -> Markup:
    """From which layer on the target gives way. `rows`: one operation, the last layer first."""
    lost = rows.filter(pl.col("target_rank") > 0)
    if lost.is_empty():
        return Markup("{} stays first however many there are, {} or more").format(
            target, with_probability(rows["target_probability"].min())
        )
    stop, instead = lost["start"][0], chip(lost["top1_token"][0])
    kept = rows.filter(pl.col("start") > stop)
    if kept.is_empty():
        return Markup("{} gives way to {} without the last one alone").format(target, instead)
    return Markup("{} stays first from layer {} on, {} or more, and from layer {} on gives way to {}").format(
        target, kept["start"][-1], with_probability(kept["target_probability"].min()), stop, instead
    )


def with_layer(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(layer=pl.col("layers").cast(pl.Int64)).sort("layer", maintain_order=True)


def common(rows: pl.DataFrame) -> tuple[list[str], int]:
    """The tokens that most often come first, several if they tie, and how often each does."""
    counts = leading(rows.group_by("top1_token", maintain_order=True).len(), "len")
    return counts["top1_token"].to_list(), counts["len"][0]


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
            least = trailing(here, "target_probability")
            lost = here.filter(pl.col("target_rank") > 0)
            found.append(
                {
                    "part": name,
                    "instead": words,
                    "cases": here.height,
                    "kept": here.height - lost.height,
                    "least": least["target_probability"][0],
                    "at": least["component"][0].removeprefix("mamba2 ")
                    if "from" in name
                    else place(with_layer(least))
                    if here.height > 1
                    else "",
                    "most": dict(zip(("tokens", "times"), common(lost), strict=True)) if lost.height else None,
                    "lost": lost.height,
                }
            )
    return found


def story(rows: pl.DataFrame) -> Markup:
    """Whether the answer stays without single parts and without whole kinds. `rows`: ablations, one model."""
    parts, sets = needed(rows), without_kind(rows)
    if parts.is_empty() and sets.is_empty():
        return Markup()
    prompts = answered(rows)["prompt"].n_unique()
    told = [
        Markup("with one {} off, {}").format(part, by_operation(parts.filter(pl.col("part") == part), prompts))
        for part in ordered(parts, "part")
    ]
    told += [
        Markup("with {} off{}, {}").format(
            every(here["planned_edits"][0], f"{MIXERS[kind]} layer"),
            "" if prompts == 1 else f" ({printable(prompt)})",
            of_set(here.filter(pl.col("prompt") == prompt)),
        )
        for kind in MIXERS
        if (here := sets.filter(pl.col("component") == f"all {kind}")).height
        for prompt in ordered(here, "prompt")
    ]
    over = "" if prompts == 1 else f" (over {counted(prompts, 'prompt')} that are answered as expected)"
    return Markup("Does it stay first{}? {}.").format(over, sentence_case(Markup("; ").join(told)))


def by_operation(rows: pl.DataFrame, prompts: int) -> Markup:
    """In how many cases the target stays first without one part. `rows`: `needed`, one kind of part."""
    done = rows.to_dicts()
    if rows.select(pl.col("kept") == pl.col("cases"))["kept"].all() and rows["cases"].n_unique() == 1:
        least = with_probability(rows["probability"].min()).removeprefix("with ")
        return Markup("{}, {} ({} or more)").format(tally(done[0]["kept"], done[0]["cases"]), whichever(rows), least)
    return listed(
        [
            Markup("{} {}{}").format(tally(row["kept"], row["cases"]), INSTEAD[row["operation"]], bar(row, prompts))
            for row in done
        ]
    )


def bar(row: dict[str, Any], prompts: int) -> str:
    """` (not in layer 23)`: the exceptions of one operation, if they are few and of one prompt."""
    if not row["lost"] or len(row["lost"]) > MANY or prompts > 1:
        return ""
    return f" (not in {place(with_layer(pl.DataFrame(row['lost'])))})"


def of_set(rows: pl.DataFrame) -> Markup:
    """What comes first without a whole kind, by operation. `rows`: `without_kind`, one kind and prompt."""
    low, high = (probability(rows["target_probability"].min()), probability(rows["target_probability"].max()))
    span = low if low == high else f"{low} to {high}"
    from_clean = f"{probability(rows['clean'][0])} falls to {span}"
    if not rows["kept"].any():
        return Markup("another token comes first, {} (its {})").format(whichever(rows), from_clean)
    if rows["kept"].all() and low == high == probability(rows["clean"][0]):
        return Markup("it does, {}, as probable as before ({})").format(whichever(rows), low)
    cases = [
        Markup("{} it {}").format(
            INSTEAD[row["operation"]],
            Markup("stays first ({} {})").format(
                probability(row["clean"]), changed(row["clean"], row["target_probability"])
            )
            if row["kept"]
            else Markup("gives way to {} ({} falls to {})").format(
                chip(row["top1_token"]), probability(row["clean"]), probability(row["target_probability"])
            ),
        )
        for row in rows.to_dicts()
    ]
    return listed(cases)


def changed(before: float, after: float) -> str:
    """`falls to 0.197`, `rises to 0.99`, `as before`: as far as the decimals that are shown tell."""
    told = {"none": "as before", "less": f"falls to {probability(after)}", "more": f"rises to {probability(after)}"}
    return told[way([after - before], 10**-DECIMALS)]


def whichever(rows: pl.DataFrame) -> str:
    """`set to zero`, or `whichever of the 3 ways is taken`."""
    ways = ordered(rows, "operation")
    return INSTEAD[ways[0]] if len(ways) == 1 else f"whichever of the {len(ways)} ways is taken"
