"""What the first token is needed for."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import printable, probability, size, whole
from tokentrail.wording.claims import KL_FLOOR, SINK, beside_uniform, leading, moves_more, trailing
from tokentrail.wording.words import at_layers, counted, listed, power, sentence_case, tally

WORDS = {
    "mask": "hiding it",
    "drop_value": "dropping its value",
    "renormalise": "giving its weight to the others",
    "replace_token": "putting another token there",
}


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model with attention, sentences, and the KL of each prompt."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["sink"].filter(pl.col("model") == model)
        if rows.height:
            said = {"weight": weight(rows, tables["tokens"]), "moved": moved(rows), "first": first_kept(rows)}
            found.append({"index": index, "prompts": by_prompt(rows)} | said)
    return found


def weight(rows: pl.DataFrame, tokens: pl.DataFrame) -> Markup:
    """The weight on the first token beside that of evenly spread attention. `rows`: sink, one model; `tokens` of it."""
    layers = beside_uniform(rows, tokens)
    if layers.is_empty():
        return Markup()
    prompts = counted(rows["prompt"].n_unique(), "prompt")
    if layers.height == 1:
        sentence = Markup("In its one attention layer, {} of the weight lies on the first token (mean over {})").format(
            probability(layers["weight"][0]), prompts
        )
    else:
        low, high = trailing(layers, "weight"), leading(layers, "weight")
        sentence = Markup(
            "On average over layers and {}, {} of the attention weight lies on the first token, from {} in {} to {} in "
            "{}"
        ).format(
            prompts,
            probability(layers["weight"].mean()),
            probability(low["weight"][0]),
            at_layers(low["layer"].to_list()),
            probability(high["weight"][0]),
            at_layers(high["layer"].to_list()),
        )
    even = Markup("; attention spread evenly over what can be seen would put {} there.").format(
        probability(layers["uniform"].mean())
    )
    sinks, below = layers.filter("is_sink").height, layers.filter("below").height
    verdict = Markup(" A layer counts as a sink from {} times that in every prompt: {} of {} {}{}.").format(
        f"{SINK:g}",
        "none" if not sinks else whole(sinks),
        counted(layers.height, "attention layer"),
        "does" if sinks < 2 else "do",
        f", and {whole(below)} {'has' if below == 1 else 'have'} less than the even weight" if below else "",
    )
    return sentence + even + verdict


def moved(rows: pl.DataFrame) -> Markup:
    """Which of the interventions moves the prediction most, mean over prompts. `rows`: sink, one model."""
    prompts = rows["prompt"].n_unique()
    found = {row["intervention"]: row for row in kl_by_intervention(rows).to_dicts() if row["intervention"] in WORDS}
    if not found:
        return Markup()
    means = {kind: row["mean"] for kind, row in found.items()}
    over = f" on average over {counted(prompts, 'prompt')}" if prompts > 1 else ""
    told = []
    for kind in sorted(means, key=lambda kind: -means[kind]):
        verb, unit = (" moves the prediction", f" nats{over}") if not told else ("", "")
        span = f" ({size(found[kind]['least'])} to {size(found[kind]['most'])})" if prompts > 1 else ""
        told.append(f"{WORDS[kind]}{verb} by {size(means[kind])}{unit}{span}")
    sentence = Markup("{}.").format(sentence_case(str(listed(told))))
    value, norm = means.get("drop_value"), means.get("renormalise")
    if value is None or norm is None or "mask" not in means:
        return sentence
    more, less, cases = moves_more(rows, "renormalise", "drop_value")
    told = f"the second moves the prediction more {tally(more, cases)}, the first {tally(less, cases)}"
    sentence += Markup(
        " Hiding it drops its value and gives its weight to the others at once; of the two done alone, {}{}"
    ).format(
        told, "" if more + less == cases else Markup("; below {} nats nothing is told apart").format(power(KL_FLOOR))
    )
    if means["mask"] < min(value, norm):
        sentence += ", and both together move it less than either" + (" on average" if prompts > 1 else "")
    return sentence + "."


def first_kept(rows: pl.DataFrame) -> Markup:
    """In how many prompts the most likely token is still the same. `rows`: sink, one model."""
    answers = rows.unique(["prompt", "intervention"], keep="first", maintain_order=True)
    clean = answers.filter(pl.col("intervention") == "none").select("prompt", clean="top1_token")
    changed = answers.join(clean, on="prompt", maintain_order="left").filter(pl.col("intervention").is_in(list(WORDS)))
    told = [
        f"{tally((of['top1_token'] == of['clean']).sum(), of.height)} after {WORDS[kind]}"
        for kind in WORDS
        for of in [changed.filter(pl.col("intervention") == kind)]
        if of.height
    ]
    return Markup("The most likely token stays the same {}.").format(listed(told)) if told else Markup()


def kl_by_intervention(rows: pl.DataFrame) -> pl.DataFrame:
    return (
        rows.unique(["prompt", "intervention"], keep="first", maintain_order=True)
        .group_by("intervention", maintain_order=True)
        .agg(mean=pl.col("kl").mean(), least=pl.col("kl").min(), most=pl.col("kl").max())
    )


def by_prompt(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """KL and the target's probability of each prompt under each intervention."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows.unique(["prompt", "intervention"], keep="first", maintain_order=True).to_dicts():
        found.setdefault(row["prompt"], {"prompt": printable(row["prompt"])})[row["intervention"]] = row
    return list(found.values())
