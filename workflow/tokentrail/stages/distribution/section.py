"""What narrows the distribution, and what decoding may make of it."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import as_computed, ordered, with_factors
from tokentrail.charts.text import decimals, printable
from tokentrail.wording.claims import trailing, way
from tokentrail.wording.words import chip, counted, listed, tally

NONE = "as computed"
NO_CHANGE = 0.005
"""Bits; a smaller change of the entropy is shown as 0.00, and goes no way."""


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, the factors of its experiments in sentences, its decoding rules and its continuations."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["distribution"].filter(pl.col("model") == model)
        if rows.is_empty():
            continue
        experiments = rows.filter(pl.col("experiment") != "")
        found.append(
            {
                "index": index,
                "experiments": [
                    {"name": printable(name), "says": factors(with_factors(experiments.filter(experiment=name)))}
                    for name in ordered(experiments, "experiment")
                ],
                "kept": kept(rows.filter(pl.col("experiment") == "")),
                "rules": rules(rows),
                "continued": continued(rows.filter(pl.col("experiment") == "")),
            }
        )
    return found


def factors(rows: pl.DataFrame) -> list[Markup]:
    """What each factor does to the entropy, whatever the others are. `rows`: one experiment `with_factors`."""
    names = [column for column in rows.columns if column.startswith("factor ")]
    return [effect(rows, name, [other for other in names if other != name]) for name in names]


def effect(rows: pl.DataFrame, factor: str, others: list[str]) -> Markup:
    """One factor: the mean entropy at each level, and for two levels the difference over all combinations."""
    means = rows.group_by(factor, maintain_order=True).agg(pl.col("entropy_bits").mean())
    told = [f"{printable(level)} has {decimals(bits)}" for level, bits in means.iter_rows()]
    name = printable(factor.removeprefix("factor "))
    sentence = Markup("<i>{}</i>: {} bits of entropy on average").format(name, listed(told))
    if means.height != 2:
        return sentence + "."
    first, second = means[factor].to_list()
    one, other = (rows.filter(pl.col(factor) == level).sort(*others or [factor]) for level in (first, second))
    changes = (other["entropy_bits"] - one["entropy_bits"]).to_list()
    mean = sum(changes) / len(changes)
    sentence += Markup(", {} bits {}").format(decimals(abs(mean)), "fewer" if mean < 0 else "more")
    if len(changes) == 1:
        return sentence + "."
    down, up = sum(change < -NO_CHANGE for change in changes), sum(change > NO_CHANGE for change in changes)
    same = len(changes) - down - up
    unmoved = (
        f"; {'one combination' if same == 1 else f'{same} combinations'} it leaves as wide as it was" if same else ""
    )
    direction = way(changes, NO_CHANGE)
    if direction == "none":
        return sentence + f". It changes the width in none of {len(changes)} combinations of the others."
    if direction == "both":
        return sentence + Markup(
            ". It narrows the distribution in {} of {} combinations and widens it in {}{}."
        ).format(down, len(changes), up, unmoved)
    moves = [abs(change) for change in changes if abs(change) > NO_CHANGE]
    verb = "narrows" if direction == "less" else "widens"
    which = tally(len(moves), len(changes)).replace("cases", "combinations").replace("case", "combination")
    span = decimals(min(moves)) if len(moves) == 1 else f"{decimals(min(moves))} to {decimals(max(moves))}"
    return sentence + f". It {verb} the distribution {which} of the others, by {span} bits{unmoved}."


def kept(rows: pl.DataFrame) -> Markup:
    """That no rule changes which token is first. `rows`: distribution, one model, configured prompts."""
    ruled = rows.filter(pl.col("decoding") != "none")
    if ruled.is_empty():
        return Markup()
    firsts = rows.filter(pl.col("step") == 0).group_by("prompt").agg(pl.col("top1_token").n_unique())
    changed = firsts.filter(pl.col("top1_token") > 1).height
    cases = counted(firsts.height, "prompt")
    if changed:
        return Markup("The first token is another under some rule for {} of {}.").format(changed, cases)
    return Markup("No such rule can change which token is first, and {} change it on none of {}.").format(
        listed([printable(rule) for rule in ordered(ruled, "decoding")]), cases
    )


def rules(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The first prompt's distribution under each rule."""
    first = as_computed(rows).head(1)
    if first.is_empty():
        return []
    own = rows.filter((pl.col("prompt") == first["prompt"][0]) & (pl.col("step") == 0))
    return own.with_columns(pl.col("decoding").replace("none", NONE)).to_dicts()


def continued(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """What greedy decoding appends to each prompt, and how sure it is: the last row's token was not appended."""
    greedy = rows.filter(pl.col("decoding") == "none").sort("step", maintain_order=True)
    found = []
    for prompt in ordered(greedy, "prompt"):
        steps = greedy.filter(pl.col("prompt") == prompt)
        if steps.height > 1:
            appended = steps.head(steps.height - 1)
            least = trailing(appended, "top1_probability").row(0, named=True)
            found.append(
                {
                    "prompt": printable(prompt),
                    "text": "".join(appended["top1_token"]),
                    "tokens": appended.height,
                    "bits": appended["entropy_bits"].mean(),
                    "least": least["top1_probability"],
                    "at": chip(least["top1_token"]),
                }
            )
    return found
