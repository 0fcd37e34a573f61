"""How far away the name may be, and what reaches the end from it."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import ordered
from tokentrail.charts.text import printable, probability, scientific, size, whole
from tokentrail.wording.claims import reach
from tokentrail.wording.words import chip, counted, every, listed, power, tally, with_probability


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model that was run on fillers, sentences by filler and the rows of its sweep."""
    found = []
    for index, model in enumerate(settings["models"]):
        sweep = tables["filler_sweep"].filter(pl.col("model") == model)
        reach = tables["long_range"].filter(pl.col("model") == model)
        if sweep.is_empty() and reach.is_empty():
            continue
        found.append(
            {
                "index": index,
                "fillers": [
                    {
                        "name": printable(filler),
                        "swept": swept(sweep.filter(pl.col("filler") == filler)),
                        "reached": reached(reach.filter(pl.col("filler") == filler)),
                    }
                    for filler in ordered(pl.concat([sweep.select("filler"), reach.select("filler")]), "filler")
                ],
                "rows": paired(sweep),
            }
        )
    return found


def paired(sweep: pl.DataFrame) -> list[dict[str, Any]]:
    """One entry for each filler and length, with both variants in it."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for row in sweep.to_dicts():
        entry = rows.setdefault(
            (row["filler"], row["repeats"]), {key: row[key] for key in ("filler", "repeats", "tokens", "distance")}
        )
        entry[row["variant"]] = row
    return list(rows.values())


def swept(rows: pl.DataFrame) -> Markup:
    """The name by distance, as trained and with attention off. `rows`: filler_sweep, one model and filler."""
    sentence = outcome(rows.filter(pl.col("variant") == "as_trained"))
    off = outcome(rows.filter(pl.col("variant") == "attention_off"))
    parts = []
    if sentence:
        parts.append(Markup("As trained, the name is the first answer {}.").format(sentence))
    if off:
        parts.append(Markup("With all attention off, it is so {}.").format(off))
    beyond = rows.filter(pl.col("status") == "exceeds_positions")["tokens"].unique().sort().to_list()
    if beyond:
        parts.append(
            Markup("The model has no positions for {} tokens, so {} not run.").format(
                " or ".join(map(whole, beyond)), "this length was" if len(beyond) == 1 else "these lengths were"
            )
        )
    unseen = rows.filter(pl.col("beyond_context") & (pl.col("status") == "ok"))["tokens"].unique().sort().to_list()
    if unseen:
        parts.append(
            Markup(
                "{} tokens are more than the context that the checkpoint states, and were measured all the same."
            ).format(" and ".join(map(whole, unseen)))
        )
    return Markup(" ").join(parts)


def outcome(rows: pl.DataFrame) -> Markup:
    """At which distances the name is first, and at which it is not. `rows`: one variant."""
    run = rows.filter(pl.col("status") == "ok").sort("distance")
    if run.is_empty():
        return Markup()
    first, lost = run.filter(pl.col("target_rank") == 0), run.filter(pl.col("target_rank") > 0)
    if first.is_empty():
        return Markup("at none of these distances ({}), {}; {}").format(
            away(run), at_most(run["target_probability"].max()), instead(lost)
        )
    told = Markup("{} ({})").format(away(first), shares(first))
    if lost.is_empty():
        return told
    return told + Markup(", but not {} ({}), where {}").format(away(lost), shares(lost), instead(lost))


def at_most(p: float) -> str:
    told = with_probability(p)
    return told if "below" in told else f"{told} at most"


def away(rows: pl.DataFrame) -> Markup:
    return Markup("{} tokens back").format(listed([whole(d) for d in rows["distance"].to_list()]))


def shares(rows: pl.DataFrame) -> Markup:
    ps = [probability(p) for p in rows["target_probability"].to_list()]
    return Markup("{} {}").format("probability" if len(ps) == 1 else "probabilities", listed(ps))


def instead(lost: pl.DataFrame) -> Markup:
    """What comes first where the name does not."""
    tokens = ordered(lost, "top1_token")
    if len(tokens) == 1:
        return Markup("{} comes first").format(chip(tokens[0]))
    return Markup("{} come first").format(listed([chip(token) for token in tokens]))


def reached(rows: pl.DataFrame) -> Markup:
    """What of the name reaches the end at the smallest and the largest distance. `rows`: long_range, one filler."""
    if rows.is_empty():
        return Markup()
    near, far = rows["distance"].min(), rows["distance"].max()
    return Markup(" ").join(
        part
        for part in (
            attention(rows.filter(pl.col("attention_to_name").is_not_null()), near, far),
            retention(rows.filter(pl.col("state_retention").is_not_null()), far),
        )
        if part
    )


def attention(rows: pl.DataFrame, near: int, far: int) -> Markup:
    if rows.is_empty():
        return Markup()

    def largest(distance: int) -> dict[str, Any]:
        here = rows.filter(pl.col("distance") == distance)
        return here.sort(pl.col("attention_to_name").neg(), "layer", "head").row(0, named=True)

    there, here = largest(far), largest(near)
    sentence = Markup(
        "At {}, the last token’s largest attention weight on the name is {}, of head {} in layer {}"
    ).format(counted(far, "token"), probability(there["attention_to_name"]), there["head"], there["layer"])
    if near == far:
        return sentence + "."
    same = (there["head"], there["layer"]) == (here["head"], here["layer"])
    return sentence + Markup(" (at {}, {}, {}).").format(
        whole(near),
        probability(here["attention_to_name"]),
        "of the same head" if same else f"of head {here['head']} in layer {here['layer']}",
    )


def retention(rows: pl.DataFrame, far: int) -> Markup:
    here = rows.filter(pl.col("distance") == far)
    if here.is_empty():
        return Markup()
    most = here.sort(pl.col("state_retention").neg(), "layer", "head").row(0, named=True)
    held = here.filter(pl.col("state_retention") >= 0.1).height
    return Markup(
        "Of what the name wrote into the Mamba2 states, the head that keeps most (head {} in layer {}) still holds {} "
        "at {}, the median head {}; {} of {} heads hold a tenth or more."
    ).format(
        most["head"],
        most["layer"],
        small(most["state_retention"]),
        counted(far, "token"),
        small(here["state_retention"].median()),
        whole(held),
        whole(here.height),
    )


def small(share: float) -> Markup:
    """A share that may be far below one: `0.42`, `3.1 × 10⁻⁵`."""
    if share == 0 or share >= 0.001:
        return Markup(size(share))
    # The smallest number that a float can hold has more than 300 zeros; nobody needs them.
    return Markup("less than 10<sup>−30</sup>") if share < 1e-30 else power(float(scientific(share)))


def story(rows: pl.DataFrame, fillers: dict[str, str], mixes: bool) -> Markup:
    """One sentence for the top of the page, over every filler. `rows`: filler_sweep, one model.

    `fillers` are their texts by name; `mixes` is whether anything but attention moves something between positions.
    """
    reached = reach(rows).filter(pl.col("cases") > 0)
    trained, off = reached.filter(variant="as_trained"), reached.filter(variant="attention_off")
    if trained.is_empty():
        return Markup()
    best_first = trained.sort(pl.col("kept") / pl.col("cases"), descending=True, maintain_order=True).to_dicts()
    told = [after_filler(row, fillers) for row in best_first]
    sentence = Markup("With other text in between, the name is first {}").format(Markup("; ").join(told))
    return sentence + (Markup(". {}").format(without_attention(off, mixes)) if off.height else Markup("."))


def after_filler(row: dict[str, Any], fillers: dict[str, str]) -> Markup:
    """How far back the name is first over one filler, and where it does worst. `row`: `reach`, one variant."""
    within = " that it has positions for" if row["beyond"] else ""
    name = printable(row["filler"])
    if not row["lost"]:
        return Markup("over <i>{}</i> {}{}, up to {} tokens back").format(
            name, at_distances(row["kept"], row["cases"]), within, whole(max(row["first"]))
        )
    at = f" ({listed([whole(d) for d in row['first']])} tokens back)" if row["first"] else ""
    of_filler = row["token"].strip() in fillers.get(row["filler"], "").replace(".", " ").replace(",", " ").split()
    return Markup("over <i>{}</i> {}{}{}; worst {} back, at rank {}, where {}{} comes first").format(
        name,
        at_distances(row["kept"], row["cases"]),
        within,
        at,
        counted(row["at"], "token"),
        whole(row["rank"]),
        chip(row["token"]),
        ", a word of that text," if of_filler else "",
    )


def at_distances(part: int, total: int) -> str:
    """`at all 4 distances`, `at 2 of 4 distances`, `at none of 4 distances`."""
    if part == total:
        return f"at {every(total, 'distance')}"
    return f"at {'none' if part == 0 else whole(part)} of {counted(total, 'distance')}"


def without_attention(off: pl.DataFrame, mixes: bool) -> Markup:
    """The same with all attention off, over all fillers together. `off`: `reach`, one variant."""
    kept, cases = off["kept"].sum(), off["cases"].sum()
    sentence = Markup("With all attention off it is so {}").format(tally(kept, cases))
    if not kept:
        sentence += Markup(", {}").format(at_most(off["probability"].max()))
    if not mixes:
        sentence += Markup("; nothing else in this model moves anything from one position to another")
    return sentence + "."
