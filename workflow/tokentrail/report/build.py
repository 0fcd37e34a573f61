"""report.html: one self-contained page that needs no network and no JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from tokentrail import rooms
from tokentrail.charts import text
from tokentrail.charts.colour import on_dark
from tokentrail.charts.looks import looks
from tokentrail.charts.select import FAMILIES, as_computed, last_position, ordered
from tokentrail.provenance import constant
from tokentrail.report import narrow, sentences, svg, words
from tokentrail.stages.ablations import section as ablations
from tokentrail.stages.filler import section as filler
from tokentrail.stages.quantization import section as quantization

HERE = Path(__file__).parent


def build(
    tables: dict[str, pl.DataFrame],
    charts_dir: Path,
    settings: dict[str, Any],
    refused: Sequence[dict[str, str]] = (),
    lost: Sequence[dict[str, str]] = (),
) -> str:
    """The page as HTML. Tables may be empty: their sections then say that nothing was measured.

    `refused` is what was asked and not measured, as `tables.refused` has it; `lost` are the models that the page leaves
    out because they did not finish, each with the `stage` that failed and a `sentence` that says why.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([HERE, rooms.HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "visible": text.visible,
        "printable": text.printable,
        "probability": text.probability,
        "percent": text.percent,
        "whole": text.whole,
        "size": text.size,
        "signed": text.signed,
        "decimals": text.decimals,
        "bytes": text.binary_bytes,
        "power": words.power,
        "counted": words.counted,
        "labelled": narrow.labelled,
    }
    page = environment.get_template("page.html")
    figures = {name: figure(name, Path(charts_dir)) for name in rooms.charts()}
    return page.render(
        settings=settings,
        style=style([figure["drawing"] for figure in figures.values() if figure["drawing"]]),
        models=models(tables, settings),
        prompts=prompts(tables, settings),
        figures=figures,
        cells=cells(tables["cells"], list(settings["models"])),
        swaps=swaps(tables, settings),
        weights=tables["weights"].to_dicts(),
        census=census(tables["census"]),
        views={name: module.view(tables, settings) for name, module in rooms.sections().items() if module},
        refused=refused,
        lost=lost,
        sections=sections(settings),
        chip=words.chip,
        in_words=words.in_words,
    )


def sections(settings: dict[str, Any]) -> list[dict[str, str]]:
    """The rooms' sections in their order, and last how to read the numbers."""
    one = len(settings["models"]) == 1
    found = [
        {"name": name, "title": rooms.rooms()[name].heading, "template": f"{name}/section.html"}
        for name in rooms.sections()
        # What reproduces comes first, where there is something to reproduce.
        if name != "reproduction" or settings["ledgers"]
    ]
    for section in found:
        if one and section["name"] == "cells":
            section["title"] = "The model, cell by cell"
    return [
        *found,
        {"name": "unmeasured", "title": "Asked and not measured", "template": "unmeasured.html"},
        {"name": "conventions", "title": "How to read the numbers", "template": "conventions.html"},
    ]


def style(drawings: list[Markup]) -> Markup:
    """The page's style; on a dark page, the drawings take other colours."""
    page = Markup((HERE / "page.css").read_text(encoding="utf-8"))
    dark = Markup("@media screen and (prefers-color-scheme: dark) {{{}}}").format(svg.on_a_dark_page(drawings))
    return page + dark


def figure(name: str, charts_dir: Path) -> dict[str, Any]:
    """A chart for the page: the drawing, what it shows, and what it does not show."""
    drawn_by = rooms.charts()[name]
    caption = constant(drawn_by, "CAPTION")
    shows, does_not = (" ".join(part.split()) for part in caption.strip().split("\n\n"))
    return {
        "name": name,
        "tables": constant(drawn_by, "TABLES"),
        "shows": shows,
        "does_not": does_not,
        "drawing": svg.inline(charts_dir / f"{name}.svg", name, shows),
    }


def of(frame: pl.DataFrame, **values: str) -> pl.DataFrame:
    """The rows in which each named column has the value."""
    return frame.filter(*(pl.col(column) == value for column, value in values.items()))


def models(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Each model: its names, and what came out on the first prompt, in sentences."""
    first_prompt = next(iter(settings["prompts"]), "")
    found = []
    for index, (name, look) in enumerate(looks(settings).items()):
        counts = of(tables["census"], model=name)
        parity = of(tables["parity"], model=name)
        answer = sentences.answer(of(tables["next_token"], model=name, prompt=first_prompt))
        lens = sentences.lens(of(tables["lens"], model=name), first_prompt, of(tables["patching"], model=name))
        hits = sentences.hits(of(tables["next_token"], model=name))
        swapped = sentences.swaps(of(tables["name_swaps"], model=name), of(tables["name_swaps_summary"], model=name))
        close = sentences.parity(parity)
        without = ablations.story(of(tables["ablations"], model=name))
        far = filler.story(
            of(tables["filler_sweep"], model=name),
            settings["fillers"],
            mixes="mamba2" in of(tables["long_range"], model=name)["mixer"],
        )
        fewer = quantization.story(of(tables["quantization"], model=name))
        found.append(
            {
                "name": name,
                "index": index,
                "label": look.label,
                "note": look.note,
                "trained": text.printable(settings["models"][name]["training_note"]),
                "colour": look.colour,
                "dark_colour": on_dark(look.colour),
                "in_cells": of(tables["cells"], model=name).height > 0,
                "tensors": counts.height,
                "parameters": counts["counted_parameters"].sum(),
                "stored_bytes": counts["stored_bytes"].sum(),
                "story": list(
                    filter(
                        None,
                        [
                            Markup(" ").join(filter(None, [answer, lens, hits])),
                            Markup(" ").join(filter(None, [without, far])),
                            swapped,
                            fewer,
                            close,
                        ],
                    )
                ),
                "swaps": swapped,
                "on_the_way": sentences.on_the_way(of(tables["lens"], model=name)),
                "parity": close,
                "agreement": sentences.agreement(parity),
                "budget": sentences.budget(parity),
                "bos": text.printable(", ".join(ordered(of(tables["tokens"], model=name), "bos_policy"))),
            }
        )
    return found


def prompts(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Each prompt, with what every model made of it."""
    return [
        {
            "name": prompt,
            "text": "\n".join(map(text.printable, shown["text"].split("\n"))),
            "target": shown["target"],
            "models": [reading(tables, model, prompt) for model in settings["models"]],
        }
        for prompt, shown in settings["prompts"].items()
    ]


def reading(tables: dict[str, pl.DataFrame], model: str, prompt: str) -> dict[str, Any]:
    """What one model made of one prompt."""
    tokens = of(tables["tokens"], model=model, prompt=prompt)
    answers = of(tables["next_token"], model=model, prompt=prompt).sort("rank").to_dicts()
    spread = of(as_computed(tables["distribution"]), model=model, prompt=prompt).to_dicts()
    lens = of(tables["lens"], model=model, prompt=prompt)
    residual = of(tables["residual"], model=model, prompt=prompt)
    parity = of(tables["parity"], model=model, prompt=prompt)
    return {
        "model": model,
        "tokens": tokens.to_dicts(),
        "cut": sentences.cut(tokens),
        "note": text.printable("".join(tokens["note"].unique())),
        "first": answers[0] if answers else None,
        "target": next((row for row in answers if row["is_target"]), None),
        "distribution": spread[0] if spread else None,
        "lens": sentences.lens_facts(lens),
        "growth": sentences.growth(last_position(residual)),
        "parity": parity.select(
            pl.col("max_abs_logit_diff", "max_abs_error_ours", "max_abs_error_reference", "max_abs_logit").max(),
            agrees=pl.col("top1_agrees").sum(),
            positions=pl.len(),
        ).row(0, named=True)
        if parity.height
        else None,
    }


def swaps(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The summary of the name swaps, one entry for each set, template and model."""
    summary = tables["name_swaps_summary"]
    rows = summary.select("set", "template", "model", "rows", "names").unique(maintain_order=True).to_dicts()
    for row in rows:
        here = of(summary, set=row["set"], template=row["template"], model=row["model"])
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
    here = of(swapped, set=row["set"], model=row["model"]).filter(
        pl.col("rank") > 0, (pl.col("template") == row["template"]) | (row["template"] == "all")
    )
    counted = here.group_by("top1_token", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    return {"token": counted["top1_token"][0], "times": counted["len"][0], "of": here.height} if here.height else None


def repeated(rows: list[dict[str, Any]], row: dict[str, Any]) -> bool:
    return any(r["set"] == row["set"] and r["template"] not in (row["template"], "all") for r in rows)


def cells(frame: pl.DataFrame, names: list[str]) -> list[dict[str, Any]]:
    """The cell table turned: one entry for each part, with one list of cells for each model.

    Quantities that every model has stand in rows of their own; cells that only some have share a row by their part,
    so that a mixer stands beside a mixer.
    """
    present = [name for name in names if name in set(frame["model"])]
    common = {
        (part, cell)
        for part, cell, count in frame.group_by("part", "cell").agg(pl.col("model").n_unique()).iter_rows()
        if count == len(present) and part in ("size", "embed", "residual")
    }
    rows: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
    for row in frame.to_dicts():
        alone = (row["part"], row["cell"]) in common
        key = (row["part"], row["cell"] if alone else "")
        entry = {"cell": "" if alone else row["cell"], "layers": row["layers"], "detail": row["detail"]}
        rows.setdefault(key, {name: [] for name in present}).setdefault(row["model"], []).append(entry)
    return [
        {
            "part": part,
            "what": what,
            "models": [found[name] for name in present],
            "differs": any(found[name] != found[present[0]] for name in present),
        }
        for (part, what), found in rows.items()
    ]


def census(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Families of each model with their counts."""
    families = frame.group_by("model", "family", maintain_order=True).agg(
        pl.col("counted_parameters", "stored_bytes").sum(),
        pl.col("family_share").first(),
        formats=pl.col("stored_dtype").unique(maintain_order=True).str.join(", "),
        tensors=pl.len(),
    )
    shown = {family: place for place, family in enumerate(FAMILIES)}
    return [
        row | {"name": FAMILIES[row["family"]]}
        for row in sorted(families.to_dicts(), key=lambda row: shown[row["family"]])
    ]
