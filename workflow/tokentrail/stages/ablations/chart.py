"""Every layer switched off alone, and the sets of layers switched off together."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import MIXERS, OPERATIONS, first_prompt

TABLES = ("ablations",)
CAPTION = """
The probability of the target when one part of the model is switched off and everything else runs on. Each column is one
layer: its mixer above, its FFN below. The dashed line is the model with nothing changed. The shape tells what is put in
the place of the part: zero, its mean over other prompts, or what it adds after another prompt. A full mark means that
the target still is the most likely token; a hollow red mark means that it is not. Shaded columns are attention layers,
where a model has Mamba2 layers too. The columns at the right are all attention and all Mamba2 layers, switched off
together. Each model is drawn on the first prompt that was ablated.

It does not show what a part does: a fall says that this answer changes without the part, be it what carries the answer
or what the model needs in order to work at all. Zero is a value that later layers hardly ever saw; where zero and the
other two differ, it is the blunter test. Nor does it show what two parts can do for each other, which only the sets
touch.
"""
SHAPES = {"zero": "circle", "mean": "square", "resample": "triangle-up"}
PANELS = {"mixer": "Mixers off", "ffn": "One FFN off", "from": "All Mamba2 layers off from this layer on"}
SETS = ("all attention", "all mamba2")


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = first_prompt(tables["ablations"]).filter(pl.col("component") != "head")
    title = "What if one part is switched off?"
    models = theme.drawn(rows.filter(pl.col("component") != "clean"), settings)
    if not models:
        return theme.finish(theme.nothing("No prompt was ablated."), title, CAPTION, settings)
    of = looks(settings)
    blocks = [block(rows.filter(pl.col("model") == model), of[model], len(models)) for model in models]
    drawn = rows.filter(pl.col("model").is_in(models))["operation"].unique()
    methods = [operation for operation in OPERATIONS if operation in drawn]
    told = extremes(
        rows.filter(pl.col("component") != "clean").with_columns(pl.col("operation").replace(OPERATIONS)),
        "target_probability",
        "Probability of the target without a part or a set of them",
        settings,
        {"component": "", "layers": "layers", "operation": ""},
        text.probability,
    )
    return theme.finish(alt.vconcat(method_key(methods), *blocks, spacing=18), title, CAPTION, settings, told)


def block(rows: pl.DataFrame, look: Look, models: int) -> alt.VConcatChart:
    """One model: a panel for each kind of single part, and the sets."""
    single = rows.with_columns(
        layer=pl.when(pl.col("component").is_in(["mixer", "ffn"]))
        .then(pl.col("layers"))
        .otherwise(pl.col("component").str.extract(r"^mamba2 from layer (\d+)$"))
        .cast(pl.Int64, strict=False),
        panel=pl.col("component").replace(SETS, "mixer").str.replace("^mamba2 from.*", "from"),
    )
    clean = rows.filter(pl.col("component") == "clean")["target_probability"].to_list()
    attention = attention_layers(single)
    shown = [panel for panel in PANELS if panel in set(single["panel"])]
    depth = (single["layer"].max() or 0) + 1
    # Sets stand in columns of their own, right of the layers.
    sets = [name for name in SETS if name in set(single["component"])]
    places = {name: depth + 1.2 + 3.2 * index for index, name in enumerate(sets)}
    at = pl.coalesce(pl.col("layer"), pl.col("component").replace_strict(places, default=None, return_dtype=pl.Float64))
    single = single.with_columns(at=at)
    right = places[sets[-1]] + 1.6 if sets else depth - 0.4
    panels = [
        panel_of(single.filter(pl.col("panel") == panel), panel, clean, attention, depth, right, look)
        for panel in shown
    ]
    where = f"prompt {text.printable(rows['prompt'][0])}"
    if clean:
        where += f"; {text.probability(clean[0])} with nothing changed (dashed)"
    parts = alt.vconcat(*panels, spacing=14)
    return parts.properties(title=theme.heading(look.label if models > 1 else where, where if models > 1 else ""))


def attention_layers(single: pl.DataFrame) -> list[int]:
    """Layers to shade: those with attention, if the model has Mamba2 layers as well."""
    mixers = single.filter(pl.col("component") == "mixer")
    if mixers["mixer"].n_unique() < 2:
        return []
    return mixers.filter(pl.col("mixer") == "attention")["layer"].unique().sort().to_list()


def panel_of(
    rows: pl.DataFrame, panel: str, clean: list[float], attention: list[int], depth: int, right: float, look: Look
) -> alt.LayerChart:
    methods = [operation for operation in OPERATIONS if operation in set(rows["operation"])]
    spread = 0.28 if len(methods) > 1 else 0
    offsets = {method: (index - (len(methods) - 1) / 2) * spread for index, method in enumerate(methods)}
    points = rows.with_columns(
        at=pl.col("at") + pl.col("operation").replace_strict(offsets, default=0.0, return_dtype=pl.Float64),
        first=pl.col("target_rank") == 0,
        top=pl.col("top1_token").map_elements(text.visible, pl.String),
        probability=pl.col("target_probability").round_sig_figs(4),
        clean=pl.lit(clean[0] if clean else None, pl.Float64),
    ).select("component", "layers", "at", "operation", "first", "probability", "top", "clean")
    scale = alt.Scale(domain=[-0.6, right], nice=False)
    every = 1 if depth <= 36 else 4
    x_axis = alt.Axis(
        title=None, values=list(range(0, depth, every)), format="d", grid=False, labelOverlap=True, domain=False
    )
    x = alt.X("at:Q", scale=scale, axis=x_axis)
    y_title = "probability of the target"
    y_scale = alt.Scale(domain=[0, 1], nice=False)
    y = alt.Y("probability:Q", scale=y_scale, axis=alt.Axis(title=y_title, values=[0, 0.5, 1]))
    size = {"width": theme.WIDTH - 20, "height": 110}
    base = alt.Chart(points, **size).encode(x=x, y=y)
    stems = base.mark_rule(strokeWidth=1, color=theme.FAINT).encode(y2="clean:Q") if clean else None
    marks = base.mark_point(size=34, opacity=1, strokeWidth=1.4).encode(
        shape=alt.Shape("operation:N", scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())), legend=None),
        fill=alt.condition("datum.first", alt.value(look.colour), alt.value(theme.PAPER)),
        stroke=alt.condition("datum.first", alt.value(look.colour), alt.value(theme.ALERT)),
        tooltip=[
            "component:N",
            "layers:N",
            "operation:N",
            alt.Tooltip("probability:Q", format=".4g"),
            alt.Tooltip("top:N", title="most likely"),
        ],
    )
    bands = pl.DataFrame(
        {"left": [layer - 0.5 for layer in attention], "right": [layer + 0.5 for layer in attention]},
        schema={"left": pl.Float64, "right": pl.Float64},
    )
    layers = [
        alt.Chart(bands, **size)
        .mark_rect(color=theme.GRID, opacity=0.9)
        .encode(x=alt.X("left:Q", scale=scale, axis=x_axis), x2="right:Q"),
        alt.Chart(pl.DataFrame({"clean": clean}), **size)
        .mark_rule(strokeDash=[4, 3], color=theme.INK)
        .encode(y=alt.Y("clean:Q", scale=y_scale)),
        *([stems] if stems else []),
        marks,
    ]
    names = pl.DataFrame(
        [
            {"at": (depth - 1) / 2, "line": 30, "name": "layer"},
            *(
                {"at": at, "line": line, "name": name}
                for component, at in rows.filter(pl.col("layer").is_null())
                .select("component", pl.col("at"))
                .unique(maintain_order=True)
                .iter_rows()
                for line, name in ((15, "all"), (30, MIXERS[component.removeprefix("all ")]))
            ),
        ]
    )
    labels = [
        alt.Chart(of_line.drop("line"), **size)
        .mark_text(baseline="middle")
        .encode(x=alt.X("at:Q", scale=scale, axis=x_axis), y=alt.value(size["height"] + line), text="name:N")
        for (line,), of_line in names.group_by("line", maintain_order=True)
    ]
    note = "attention layers are shaded" if attention and panel == "mixer" else ""
    title = alt.TitleParams(PANELS[panel], subtitle=note, fontSize=12, offset=6)
    return alt.layer(*layers, *labels).properties(title=title)


def method_key(methods: list[str]) -> alt.LayerChart:
    """Names the shapes, and what a hollow mark means."""
    entries = [(SHAPES[method], OPERATIONS[method], True) for method in methods]
    entries.append(("circle", "target no longer first", False))
    left, rows = 0, []
    for shape, label, full in entries:
        rows.append({"left": left + 6, "text": left + 18, "label": label, "shape": shape, "full": full})
        left += 44 + 6.2 * len(label)
    frame = pl.DataFrame(rows)
    place = alt.Scale(domain=[0, theme.WIDTH], nice=False)
    base = alt.Chart(frame, width=theme.WIDTH, height=16)
    marks = base.mark_point(size=44, opacity=1, strokeWidth=1.4).encode(
        x=alt.X("left:Q", scale=place, axis=None),
        shape=alt.Shape("shape:N", scale=None),
        fill=alt.condition("datum.full", alt.value(theme.MUTED), alt.value(theme.PAPER)),
        stroke=alt.condition("datum.full", alt.value(theme.MUTED), alt.value(theme.ALERT)),
    )
    names = base.mark_text(align="left").encode(x=alt.X("text:Q", scale=place, axis=None), text="label:N")
    return marks + names
