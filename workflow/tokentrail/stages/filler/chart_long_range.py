"""What reaches the last token from the name: attention, and what is left in the Mamba2 state."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import colour, text, theme
from tokentrail.charts.looks import Look, looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import layers_of, ordered

TABLES = ("long_range",)
CAPTION = """
Two ways in which the last token can get at a name far back, layer by layer and at several distances. For attention
layers, the weight of the last token on the name: of the head with the largest weight, and the mean over heads. For
Mamba2 layers, the share of what the name wrote into the state that the decay has left by the last token, on a
logarithmic scale: of the head that keeps most, and of the median head. Strong is near, pale is far; thin lines are the
other texts put in between. Shares below a millionth are drawn there.

It does not show that the name is read: a weight says where a head looks, not whether that decides the answer, and a
share that is left in the state may be buried under what was written since, or never be read out. What the layers
before have already moved to other positions is not counted here either.
"""
FLOOR = 1e-6
PANELS = {
    "attention": (
        ("largest", "Attention on the name, largest head"),
        ("middle", "Attention on the name, mean of heads"),
    ),
    "mamba2": (("largest", "Left in the state, head that keeps most"), ("middle", "Left in the state, median head")),
}


def chart(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> alt.TopLevelMixin:
    rows = tables["long_range"]
    title = "What reaches the last token from the name?"
    models = theme.drawn(rows, settings)
    if not models:
        return theme.finish(theme.nothing("No filler is configured."), title, CAPTION, settings)
    by_layer = rows.group_by("model", "filler", "repeats", "distance", "mixer", "layer", maintain_order=True).agg(
        largest=pl.max_horizontal(pl.col("attention_to_name").max(), pl.col("state_retention").max()),
        middle=pl.coalesce(pl.col("attention_to_name").mean(), pl.col("state_retention").median()),
    )
    of = looks(settings)
    blocks = [block(by_layer.filter(pl.col("model") == model), of[model], len(models)) for model in models]
    # Each model has shades of its own colour.
    body = alt.vconcat(*blocks, spacing=26).resolve_scale(color="independent")
    told = extremes(
        by_layer,
        "largest",
        "Largest weight of a head on the name, or share that is left of it in the state",
        settings,
        {"mixer": "", "layer": "layer", "filler": "filler", "distance": "tokens back"},
    )
    return theme.finish(body, title, CAPTION, settings, told)


def block(rows: pl.DataFrame, look: Look, models: int) -> alt.VConcatChart:
    """One model: a key of its distances, and a row of panels for each kind of mixer that it has."""
    filler = ordered(rows, "filler")[0]
    repeats = rows["repeats"].unique().sort().to_list()
    shades = alt.Scale(domain=repeats, range=colour.shades(look.colour, len(repeats)))
    depth = rows["layer"].max() + 1
    drawn = [
        alt.hconcat(
            *(
                panel(
                    rows.filter(pl.col("mixer") == mixer), column, heading, mixer, filler, shades, depth, leftmost=not i
                )
                for i, (column, heading) in enumerate(panels)
            ),
            spacing=14,
        )
        for mixer, panels in PANELS.items()
        if layers_of(rows, mixer)
    ]
    where = f"filler {text.shorten(text.printable(filler), 40)}"
    others = rows["filler"].n_unique() - 1
    if others:
        where += f"; {'the other filler' if others == 1 else f'{others} other fillers'} thin"
    return alt.vconcat(distances(rows.filter(pl.col("filler") == filler), shades), *drawn, spacing=12).properties(
        title=theme.heading(look.label if models > 1 else where, where if models > 1 else "")
    )


def distances(rows: pl.DataFrame, shades: alt.Scale) -> alt.LayerChart:
    """Names the shade of each distance."""
    found = rows.group_by("repeats").agg(pl.col("distance").first()).sort("repeats")
    entries, left = [], 0
    for repeat, distance in found.iter_rows():
        label = f"{text.whole(distance)} tokens back"
        entries.append({"repeats": repeat, "left": left, "right": left + 26, "text": left + 33, "label": label})
        left += 33 + 7 * len(label) + 18
    place = alt.Scale(domain=[0, theme.WIDTH], nice=False)
    base = alt.Chart(pl.DataFrame(entries), width=theme.WIDTH, height=14)
    line = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("left:Q", scale=place, axis=None), x2="right:Q", color=alt.Color("repeats:O", scale=shades, legend=None)
    )
    return line + base.mark_text(align="left").encode(x=alt.X("text:Q", scale=place, axis=None), text="label:N")


def panel(
    rows: pl.DataFrame,
    column: str,
    heading: str,
    mixer: str,
    filler: str,
    shades: alt.Scale,
    depth: int,
    leftmost: bool,
) -> alt.LayerChart:
    attention = mixer == "attention"
    floor = 0.0 if attention else FLOOR
    shown = rows.select(
        "filler",
        "repeats",
        "distance",
        "layer",
        main=pl.col("filler") == filler,
        value=pl.col(column).clip(floor).round_sig_figs(4),
    )
    if attention:
        top = rows["largest" if column == "largest" else "middle"].max() or 1.0
        scale = alt.Scale(domain=[0, min(1.0, max(top * 1.05, 1e-3))], nice=False)
        axis = alt.Axis(title="weight" if leftmost else None, tickCount=4, format=".2~f")
    else:
        scale = alt.Scale(type="log", domain=[FLOOR, 1], nice=False)
        axis = alt.Axis(title="share left (log)" if leftmost else None, values=[1, 1e-2, 1e-4, 1e-6], format="~e")
    x = alt.X(
        "layer:Q",
        scale=alt.Scale(domain=[-0.4, depth - 0.6], nice=False),
        axis=alt.Axis(title=f"{'attention' if attention else 'Mamba2'} layer", tickMinStep=1, format="d", tickCount=8),
    )
    base = alt.Chart(shown, width=theme.panel_width(2, room=60), height=140).encode(
        x=x,
        y=alt.Y("value:Q", scale=scale, axis=axis),
        color=alt.Color("repeats:O", scale=shades, legend=None),
    )
    told = [
        "layer:Q",
        "filler:N",
        alt.Tooltip("distance:Q", format=",d"),
        alt.Tooltip("value:Q", format=".3g", title="share"),
    ]
    main, thin = base.transform_filter("datum.main"), base.transform_filter("!datum.main")
    lines = [
        thin.mark_line(strokeWidth=0.7).encode(detail=["filler:N", "repeats:O"]),
        main.mark_line(strokeWidth=1.8),
        main.mark_point(size=16, filled=True, opacity=1).encode(tooltip=told),
    ]
    return alt.layer(*lines).properties(title=alt.TitleParams(heading, fontSize=12, offset=6))
