"""The model card of a reference model: every figure in it is read from the tables, the checkpoint and the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from tokentrail.forward import spec as specs
from tokentrail.forward.describe import describe
from tokentrail.forward.families import read_spec
from tokentrail.measure.bootstrap import interval
from tokentrail.training.text import HELD_OUT_SHARE, Parts
from tokentrail.weights.checkpoint import Checkpoint

BOOTSTRAP = {"samples": 2000, "level": 0.95, "seed": 0}
TITLES = {"as_trained": "As trained", "attention_off": "With all attention switched off"}
FILLERS = {"without_people": "without people", "with_people": "with people"}


def render(
    checkpoint: Checkpoint, parts: Parts, settings: dict[str, Any], training: pl.DataFrame, evaluation: pl.DataFrame
) -> str:
    """The card as Markdown, from tables `training` and `evaluation`."""
    spec = read_spec(checkpoint.config)
    tensors = checkpoint.tensor_files[0]
    last = training.row(-1, named=True)
    return template().render(
        model=settings["model"],
        family=spec.family,
        parameters=sum(pl.Series(checkpoint.shape(name)).product() for name in checkpoint.tensor_names()),
        stored_bytes=tensors.stat().st_size,
        layers=layers_of(spec),
        width=spec.width,
        vocabulary=spec.vocabulary,
        positions=positions_of(spec),
        names={kind: len(names) for kind, names in parts.raw["names"].items()},
        templates=len(parts.templates),
        held_out_templates=len(parts.held_out_templates),
        held_out_share=HELD_OUT_SHARE,
        seed=settings["training"]["seed"],
        drop_mixers=settings["training"]["drop_mixers"],
        steps=last["step"],
        tokens=last["tokens"],
        loss=last["loss"],
        answer_loss=last["answer_loss"],
        cases=evaluation.filter(pl.col("variant") == "as_trained").height,
        level=BOOTSTRAP["level"],
        tables=[
            {"title": TITLES[variant], "rows": rows_of(evaluation.filter(pl.col("variant") == variant))}
            for variant in evaluation["variant"].unique(maintain_order=True)
        ],
    )


def template() -> jinja2.Template:
    """The card's text; a name that it does not get is an error, not a blank."""
    text = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    return jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True).from_string(text)


def layers_of(spec: specs.Spec) -> str:
    """Which mixer stands at which layers."""
    kinds = [specs.kind_of(layer.mixer) for layer in spec.layers]
    at = {kind: [i for i, k in enumerate(kinds) if k == kind] for kind in dict.fromkeys(kinds)}
    return f"{len(kinds)}: " + ", ".join(f"{kind} at {specs.layer_ranges(where)}" for kind, where in at.items())


def positions_of(spec: specs.Spec) -> str:
    """How the model knows where a token stands, as its cell table says it."""
    return next(row["detail"] for row in describe(spec) if row["cell"] == "positions")


def rows_of(evaluation: pl.DataFrame) -> list[dict[str, str]]:
    """For each filler and number of repeats, what the model gave for either kind of name."""
    rows = []
    for (filler, _), group in evaluation.group_by("filler", "repeats", maintain_order=True):
        row = {"filler": FILLERS[filler], "distance": span(group["distance"])}
        for (names,), some in group.group_by("names", maintain_order=True):
            low, high = interval(some["target_probability"].to_numpy(), **BOOTSTRAP)
            row[names] = f"{some['target_probability'].mean():.3f} ({low:.3f} to {high:.3f})"
            row[f"{names}_top1"] = f"{(some['target_rank'] == 0).mean():.0%}"
        rows.append(row)
    return rows


def span(distances: pl.Series) -> str:
    low, high = distances.min(), distances.max()
    return f"{low}" if low == high else f"{low} to {high}"
