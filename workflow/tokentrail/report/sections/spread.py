"""What narrows the distribution, and what decoding may make of it."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import as_computed, ordered, with_factors
from tokentrail.charts.text import printable
from tokentrail.report.words import chip, counted, listed

NONE = "as computed"


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
    told = [f"{printable(level)} has {bits:.2f}" for level, bits in means.iter_rows()]
    name = printable(factor.removeprefix("factor "))
    sentence = Markup("<i>{}</i>: {} bits of entropy on average").format(name, listed(told))
    if means.height != 2:
        return sentence + "."
    first, second = means[factor].to_list()
    one, other = (rows.filter(pl.col(factor) == level).sort(*others or [factor]) for level in (first, second))
    changes = (other["entropy_bits"] - one["entropy_bits"]).to_list()
    mean = sum(changes) / len(changes)
    sentence += Markup(", {:.2f} bits {}").format(abs(mean), "fewer" if mean < 0 else "more")
    if len(changes) == 1:
        return sentence + "."
    down = sum(change < 0 for change in changes)
    way = {0: "It widens", len(changes): "It narrows"}.get(down)
    spread = f"by {min(map(abs, changes)):.2f} to {max(map(abs, changes)):.2f} bits"
    if way:
        every = "both" if len(changes) == 2 else f"all {len(changes)}"
        return sentence + f". {way} the distribution in {every} combinations of the others, {spread}."
    return sentence + Markup(
        ". It narrows the distribution in {} of {} combinations and widens it in the rest."
    ).format(down, len(changes))


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
    return Markup("Under {}, the first token of {} stays the same.").format(
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
            least = appended.sort("top1_probability", "step").row(0, named=True)
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
