"""How much attention rests on the first token, and what happens without it."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.by_layer import layer_axis, with_depth
from tokentrail.charts.result import extremes
from tokentrail.charts.select import uniform_on_first

TABLES = ("sink", "tokens")
CAPTION = """
At the left, the weight that attention puts on the first token, mean over heads and over the tokens after it, layer by
layer; each thin line is one prompt, the thick one their mean. The grey rule is what attention spread evenly over the
visible positions would put there, mean over the prompts: a weight near it is no sink. At the right, how far the
prediction moves when the first token is taken away in four ways: no later token sees it (mask); it keeps its weights
and hands over nothing (drop value); it hands over its value and all other weights grow as if it were masked
(renormalise); another token stands in its place (replace token). Small marks are prompts, the large mark with the
number is their mean. Masking is dropping the value and renormalising at once. A KL below a millionth is drawn there.

It does not show that a large weight matters: the weight is what attention has left over as much as what it needs. The
KL counts every change of the distribution; the first token may stay the same with a large one. All layers are changed
at once, so nothing is said of single layers.
"""
INTERVENTIONS = {
    "mask": "mask",
    "drop_value": "drop value",
    "renormalise": "renormalise",
    "replace_token": "replace token",
}
FLOOR = 1e-6


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = tables["sink"]
    title = "Is the first token needed?"
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing("No model with attention was tested."), title, CAPTION, settings)
    rows = rows.filter(pl.col("model").is_in(models))
    body = alt.hconcat(
        weights_panel(rows, tables["tokens"], settings), kl_panel(rows, models, settings), spacing=110, bounds="flush"
    )
    changed = rows.filter(pl.col("intervention") != "none").unique(
        ["model", "prompt", "intervention"], maintain_order=True
    )
    told = extremes(changed, "kl", "KL from the model as trained in nats", settings, {"prompt": "", "intervention": ""})
    return theme.finish(
        alt.vconcat(theme.key(settings, models), body, spacing=8) if len(models) > 1 else body,
        title,
        CAPTION,
        settings,
        told,
    )


def weights_panel(rows: pl.DataFrame, tokens: pl.DataFrame, settings: dict[str, Any]) -> alt.LayerChart:
    once = with_depth(rows.unique(["model", "prompt", "layer"], keep="first", maintain_order=True))
    shown = once.select("model", "prompt", "layer", "at", weight=pl.col("weight_on_first").round_sig_figs(4))
    prompts = shown["prompt"].n_unique()
    base = alt.Chart(shown, width=theme.panel_width(2, room=170), height=230).encode(
        x=layer_axis(once),
        y=alt.Y(
            "weight:Q",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(title="weight on the first token", values=[0, 0.5, 1]),
        ),
        color=alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None),
    )
    dash = alt.StrokeDash("model:N", scale=theme.scale(settings, "dash"), legend=None)
    lines = base.mark_line(strokeWidth=theme.line_width(prompts)).encode(detail="prompt:N", strokeDash=dash)
    mean = base.mark_line(strokeWidth=2.6).encode(
        y=alt.Y("mean(weight):Q", scale=alt.Scale(domain=[0, 1])), strokeDash=dash
    )
    marks = base.mark_point(size=14, filled=True, opacity=1).encode(
        shape=alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None),
        tooltip=["model:N", "prompt:N", "layer:Q", alt.Tooltip("weight:Q", format=".3g")],
    )
    even = uniform_on_first(tokens).join(once, on=["model", "prompt"], how="semi").select(pl.col("uniform").mean())
    rule = (
        alt.Chart(even)
        .mark_rule(color=theme.MUTED, strokeWidth=1.4)
        .encode(y=alt.Y("uniform:Q", scale=alt.Scale(domain=[0, 1])), tooltip=[alt.Tooltip("uniform:Q", format=".3f")])
    )
    drawn = (rule, lines, marks, mean) if prompts > 1 else (rule, lines, marks)
    return alt.layer(*drawn).properties(title=theme.heading("Weight on the first token", "grey rule: spread evenly"))


def kl_panel(rows: pl.DataFrame, models: list[str], settings: dict[str, Any]) -> alt.LayerChart:
    """One line for each intervention and model."""
    kinds = [kind for kind in INTERVENTIONS if kind in set(rows["intervention"])]
    lines = {
        (kind, model): index * (len(models) + 0.9) + place
        for index, kind in enumerate(kinds)
        for place, model in enumerate(models)
    }
    changed = (
        rows.filter(pl.col("intervention").is_in(kinds))
        .unique(["model", "prompt", "intervention"], keep="first", maintain_order=True)
        .with_columns(
            at=pl.struct("intervention", "model").map_elements(
                lambda r: float(lines[r["intervention"], r["model"]]), pl.Float64
            ),
            shown=pl.col("kl").clip(FLOOR).round_sig_figs(4),
        )
        .select("model", "prompt", "at", "kl", "shown", "intervention")
    )
    means = (
        changed.group_by("model", "at", maintain_order=True)
        .agg(pl.col("kl").mean())
        .with_columns(shown=pl.col("kl").clip(FLOOR), value=pl.col("kl").map_elements(text.size, pl.String))
    )
    low = min(changed["shown"].min() or FLOOR, 1e-2) / 1.5
    high = max(changed["shown"].max() or 1.0, 1.0) * 1.5
    height = round(max(230, 17 * (len(kinds) * (len(models) + 0.9))))
    size = {"width": theme.panel_width(2, room=170), "height": height}
    y = alt.Y(
        "at:Q",
        axis=None,
        scale=alt.Scale(domain=[-0.7, max(lines.values(), default=0) + 0.7], reverse=True, nice=False),
    )
    x = alt.X(
        "shown:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(title="KL(as trained || changed), nats (log)", values=theme.decades(low, high), format="~g"),
    )
    colour = alt.Color("model:N", scale=theme.scale(settings, "colour"), legend=None)
    shape = alt.Shape("model:N", scale=theme.scale(settings, "shape"), legend=None)
    small = (
        alt.Chart(changed, **size)
        .mark_point(size=24, opacity=1, strokeWidth=1.1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=["model:N", "prompt:N", alt.Tooltip("kl:Q", format=".3g")])
    )
    big = (
        alt.Chart(means, **size)
        .mark_point(size=80, filled=True, opacity=1, stroke=theme.PAPER, strokeWidth=1)
        .encode(x=x, y=y, color=colour, shape=shape)
    )
    values = (
        alt.Chart(means, **size)
        .mark_text(align="left", dx=10, color=theme.MUTED)
        .encode(x=alt.value(size["width"]), y=y, text="value:N")
    )
    named = pl.DataFrame(
        [
            {"at": index * (len(models) + 0.9) + (len(models) - 1) / 2, "name": INTERVENTIONS[k]}
            for index, k in enumerate(kinds)
        ],
        schema={"at": pl.Float64, "name": pl.String},
    )
    names = alt.Chart(named, **size).mark_text(align="right", dx=-8).encode(x=alt.value(0), y=y, text="name:N")
    return alt.layer(small, big, values, names).properties(
        title=alt.TitleParams("How far the prediction moves", offset=14)
    )
