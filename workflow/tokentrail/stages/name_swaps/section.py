"""Other names in the sentence, in rows and in sentences."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import ordered
from tokentrail.charts.text import printable, probability, whole
from tokentrail.wording.claims import overlapping
from tokentrail.wording.words import (
    counted,
    listed,
    percent_of,
    tally,
)


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The summary of the name swaps, one entry for each set, template and model."""
    summary = tables["name_swaps_summary"]
    rows = summary.select("set", "template", "model", "rows", "names").unique(maintain_order=True).to_dicts()
    for row in rows:
        here = summary.filter(set=row["set"], template=row["template"], model=row["model"])
        row |= {each["quantity"]: each for each in here.to_dicts()}
        row["instead"] = instead(tables["name_swaps"], row)
    order = list(settings["models"])
    sets = ordered(summary, "set")
    rows = [row for row in rows if row["model"] in order]
    # A set with one template says the same thing twice: once for the template, once for all.
    several = {row["set"] for row in rows if row["template"] != "all" and repeated(rows, row)}
    rows = [row for row in rows if row["template"] != "all" or row["set"] in several]
    templates = [*dict.fromkeys(row["template"] for row in rows if row["template"] != "all"), "all"]
    return sorted(
        rows, key=lambda row: (sets.index(row["set"]), templates.index(row["template"]), order.index(row["model"]))
    )


def instead(swapped: pl.DataFrame, row: dict[str, Any]) -> dict[str, Any] | None:
    """What most often comes first in the place of the name, and how often; None if the name always does."""
    here = swapped.filter(set=row["set"], model=row["model"]).filter(
        pl.col("rank") > 0, (pl.col("template") == row["template"]) | (row["template"] == "all")
    )
    counted = here.group_by("top1_token", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    return {"token": counted["top1_token"][0], "times": counted["len"][0], "of": here.height} if here.height else None


def repeated(rows: list[dict[str, Any]], row: dict[str, Any]) -> bool:
    return any(r["set"] == row["set"] and r["template"] not in (row["template"], "all") for r in rows)


def story(rows: pl.DataFrame, summary: pl.DataFrame) -> Markup:
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
