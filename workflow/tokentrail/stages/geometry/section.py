"""The token table as vectors."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import ordered
from tokentrail.charts.text import decimals, size
from tokentrail.wording.words import chip, listed


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, sentences on lengths, neighbours and pairs, and its analogies."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["geometry"].filter(pl.col("model") == model)
        if rows.height:
            told = [lengths(rows), *(neighbours(rows, word) for word in near(rows)), pairs(rows), several(rows)]
            found.append({"index": index, "says": list(filter(None, told)), "analogies": analogies(rows)})
    return found


def near(rows: pl.DataFrame) -> list[str]:
    return ordered(rows.filter((pl.col("probe") == "neighbours") & (pl.col("pieces") == 1)), "token")


def lengths(rows: pl.DataFrame) -> Markup:
    """How long rows are. `rows`: geometry, one model."""
    of_tokens = rows.filter(pl.col("probe") == "token_norm")
    named = of_tokens.filter(pl.col("token") != "").sort("rank")
    if named.is_empty():
        return Markup()
    shortest, longest = named.row(0, named=True), named.row(-1, named=True)
    mean = of_tokens.filter(pl.col("token") == "")["value"][0]
    sentence = Markup(
        "A row of the token table has length {} on average, from {} for {} to {} for {}; length says "
    ).format(
        size(mean), size(shortest["value"]), chip(shortest["token"]), size(longest["value"]), chip(longest["token"])
    )
    sentence += "nothing about direction, and is left out of a cosine."
    positions = rows.filter(pl.col("probe") == "position_norm")
    if positions.height:
        sentence += Markup(" A row of the position table has length {} on average.").format(size(positions["value"][0]))
    return sentence


def neighbours(rows: pl.DataFrame, word: str) -> Markup:
    """The nearest rows of one word beside random tokens. `rows`: geometry, one model."""
    here = rows.filter(pl.col("token") == word)
    close = here.filter(pl.col("probe") == "neighbours").sort("rank")
    random = here.filter(pl.col("probe") == "random").row(0, named=True)
    names = [Markup("{} ({})").format(chip(row["neighbour"]), decimals(row["cosine"])) for row in close.to_dicts()]
    return Markup("Nearest to {} {} {}; to a random token its cosine is {} on average, give or take {}.").format(
        chip(word),
        "is" if len(names) == 1 else "are",
        listed(names),
        decimals(random["cosine"]),
        decimals(random["deviation"]),
    )


def pairs(rows: pl.DataFrame) -> Markup:
    known = rows.filter((pl.col("probe") == "pair") & (pl.col("pieces") == 1)).to_dicts()
    told = [
        Markup("{} and {} {}").format(chip(row["token"]), chip(row["neighbour"]), decimals(row["cosine"]))
        for row in known
    ]
    return Markup("Cosines of pairs: {}.").format(listed(told)) if told else Markup()


def several(rows: pl.DataFrame) -> Markup:
    """What could not be asked, because a word is several tokens. `rows`: geometry, one model."""
    split = ordered(rows.filter(pl.col("pieces") > 1), "token")
    if not split:
        return Markup()
    return Markup(
        "Not asked, because this tokenizer makes several tokens of a word in it, which then has no row of its own: {}."
    ).format(listed([chip(word) for word in split]))


def analogies(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """For each analogy, the nearest rows without the words put in, and the nearest of all."""
    asked = rows.filter(pl.col("probe").is_in(["analogy", "analogy_all"]) & (pl.col("pieces") == 1))
    return [
        {
            "sum": name,
            "without": asked.filter((pl.col("probe") == "analogy") & (pl.col("token") == name)).sort("rank").to_dicts(),
            "all": asked.filter((pl.col("probe") == "analogy_all") & (pl.col("token") == name)).sort("rank").to_dicts(),
        }
        for name in ordered(asked, "token")
    ]
