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
from tokentrail.charts.select import as_computed, last_position, ordered
from tokentrail.provenance import constant
from tokentrail.report import narrow, svg
from tokentrail.stages.ablations import section as ablations_section
from tokentrail.stages.filler import section as filler_section
from tokentrail.stages.lens import section as lens_section
from tokentrail.stages.name_swaps import section as name_swaps_section
from tokentrail.stages.next_token import section as next_token_section
from tokentrail.stages.parity import section as parity_section
from tokentrail.stages.quantization import section as quantization_section
from tokentrail.stages.residual import section as residual_section
from tokentrail.stages.tokens import section as tokens_section
from tokentrail.wording import words

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
        weights=tables["weights"].to_dicts(),
        views={name: view(tables, settings) for name, view in rooms.views().items()},
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
        {"name": name, "title": heading, "template": f"{name}/section.html"}
        for name, heading in rooms.sections().items()
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


def models(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Each model: its names, and what came out on the first prompt, in sentences."""
    first_prompt = next(iter(settings["prompts"]), "")
    found = []
    for index, (name, look) in enumerate(looks(settings).items()):
        counts = tables["census"].filter(model=name)
        parity = tables["parity"].filter(model=name)
        answer = next_token_section.answer(tables["next_token"].filter(model=name, prompt=first_prompt))
        lens = lens_section.lens(tables["lens"].filter(model=name), first_prompt, tables["patching"].filter(model=name))
        hits = next_token_section.hits(tables["next_token"].filter(model=name))
        swapped = name_swaps_section.story(
            tables["name_swaps"].filter(model=name), tables["name_swaps_summary"].filter(model=name)
        )
        close = parity_section.parity(parity)
        without = ablations_section.story(tables["ablations"].filter(model=name))
        far = filler_section.story(
            tables["filler_sweep"].filter(model=name),
            settings["fillers"],
            mixes="mamba2" in tables["long_range"].filter(model=name)["mixer"],
        )
        fewer = quantization_section.story(tables["quantization"].filter(model=name))
        found.append(
            {
                "name": name,
                "index": index,
                "label": look.label,
                "note": look.note,
                "trained": text.printable(settings["models"][name]["training_note"]),
                "colour": look.colour,
                "dark_colour": on_dark(look.colour),
                "in_cells": tables["cells"].filter(model=name).height > 0,
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
                "on_the_way": lens_section.on_the_way(tables["lens"].filter(model=name)),
                "parity": close,
                "agreement": parity_section.agreement(parity),
                "budget": parity_section.budget(parity),
                "bos": text.printable(", ".join(ordered(tables["tokens"].filter(model=name), "bos_policy"))),
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
    tokens = tables["tokens"].filter(model=model, prompt=prompt)
    answers = tables["next_token"].filter(model=model, prompt=prompt).sort("rank").to_dicts()
    spread = as_computed(tables["distribution"]).filter(model=model, prompt=prompt).to_dicts()
    lens = tables["lens"].filter(model=model, prompt=prompt)
    residual = tables["residual"].filter(model=model, prompt=prompt)
    parity = tables["parity"].filter(model=model, prompt=prompt)
    return {
        "model": model,
        "tokens": tokens.to_dicts(),
        "cut": tokens_section.cut(tokens),
        "note": text.printable("".join(tokens["note"].unique())),
        "first": answers[0] if answers else None,
        "target": next((row for row in answers if row["is_target"]), None),
        "distribution": spread[0] if spread else None,
        "lens": lens_section.lens_facts(lens),
        "growth": residual_section.growth(last_position(residual)),
        "parity": parity.select(
            pl.col("max_abs_logit_diff", "max_abs_error_ours", "max_abs_error_reference", "max_abs_logit").max(),
            agrees=pl.col("top1_agrees").sum(),
            positions=pl.len(),
        ).row(0, named=True)
        if parity.height
        else None,
    }
