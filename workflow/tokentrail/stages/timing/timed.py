"""Times by length: a panel for each model, a line for each implementation, and the band of the median's interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts import text, theme
from tokentrail.charts.looks import looks
from tokentrail.charts.result import extremes
from tokentrail.charts.select import OURS, ordered

DASHES = {OURS: [1, 0], "transformers eager": [6, 3], "transformers sdpa": [2, 2]}
"""How the line of each implementation is drawn: ours in the model's colour, the others in grey."""
NOTHING = "Nothing was timed."


def measured(summary: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The cases of a kind that were timed."""
    return summary.filter(pl.col("kind") == kind, pl.col("status") == "ok")


def by_context(
    summary: pl.DataFrame, kind: str, value: dict[str, pl.Expr], axes: tuple[str, str], settings: dict[str, Any]
) -> alt.TopLevelMixin:
    """`value` says what is drawn: `middle`, `low`, `high`, and `repeat` as a hollow mark; `axes` are the titles."""
    rows = measured(summary, kind).with_columns(**value)
    return panels(summary, rows, kind, settings, lambda here, width: panel(here, axes, settings, width))


def panels(
    summary: pl.DataFrame,
    rows: pl.DataFrame,
    kind: str,
    settings: dict[str, Any],
    draw: Callable[[pl.DataFrame, int], alt.LayerChart],
) -> alt.TopLevelMixin:
    """What `draw` makes of each model's rows, under the model's name, and a key if there are peers."""
    models = theme.drawn(rows, settings)
    side_by_side = min(theme.columns(len(models)), 2)
    width = theme.panel_width(side_by_side, room=90)
    drawn = []
    for model in models:
        left_out = summary.filter(pl.col("model") == model, pl.col("kind") == kind, pl.col("status") == "skipped")
        title = theme.heading(text.shorten(looks(settings)[model].label, 44), list(skipped(left_out)))
        drawn.append(draw(rows.filter(pl.col("model") == model), width).properties(title=title))
    body = theme.grid(drawn, side_by_side)
    names = ordered(rows, "implementation")
    return alt.vconcat(key(names), body, spacing=8) if len(names) > 1 else body


def told(summary: pl.DataFrame, kind: str, what: str, settings: dict[str, Any]) -> str:
    """Our own times of a kind, in words."""
    ours = measured(summary, kind).filter(pl.col("implementation") == OURS)
    return extremes(ours, "median_ms", what, settings, {"context": "tokens", "batch": "rows"})


def skipped(rows: pl.DataFrame) -> Iterator[str]:
    """One line for each reason why a case was left out."""
    yield from (f"not timed: {reason}" for reason in ordered(rows, "reason"))


def panel(rows: pl.DataFrame, axes: tuple[str, str], settings: dict[str, Any], width: int) -> alt.LayerChart:
    values = ("low", "middle", "high", "repeat")
    drawn = rows.select("implementation", "context", pl.col(values).round_sig_figs(4))
    lengths = drawn["context"].unique().sort().to_list()
    x = alt.X(
        "context:Q",
        scale=alt.Scale(type="log", domain=[lengths[0] / 1.3, lengths[-1] * 1.3], nice=False),
        axis=alt.Axis(title=axes[0], values=lengths, format=",d", labelOverlap=True),
    )
    top = 1.1 * max(drawn["high"].max(), drawn["repeat"].max() or 0)

    def y(column: str) -> alt.Y:
        axis = alt.Axis(title=axes[1], tickCount=5)
        return alt.Y(f"{column}:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=axis)

    tooltip = ["implementation:N", "context:Q", *(f"{name}:Q" for name in values)]
    layers = []
    for mine, colour in whose(rows, settings):
        base = alt.Chart(drawn.filter(mine), width=width, height=170).encode(x=x)
        layers += [
            base.mark_area(opacity=0.15, color=colour).encode(y=y("low"), y2="high:Q", detail="implementation:N"),
            # A band over a single length has no area, so that the interval is drawn as bars too.
            base.mark_rule(strokeWidth=1.2, color=colour).encode(y=y("low"), y2="high:Q"),
            base.mark_line(strokeWidth=1.8, color=colour).encode(y=y("middle"), strokeDash=dash()),
            base.mark_point(size=70, filled=False, opacity=1, strokeWidth=1.2, color=colour).encode(y=y("repeat")),
            base.mark_point(size=36, filled=True, opacity=1, color=colour).encode(y=y("middle"), tooltip=tooltip),
        ]
    return alt.layer(*layers)


def whose(rows: pl.DataFrame, settings: dict[str, Any]) -> Iterator[tuple[pl.Expr, str]]:
    """The peers' rows of one model and then ours, each with the colour that they are drawn in."""
    ours = pl.col("implementation") == OURS
    if rows["implementation"].n_unique() > 1:
        yield ~ours, theme.MUTED
    yield ours, looks(settings)[rows["model"][0]].colour


def dash() -> alt.StrokeDash:
    return alt.StrokeDash(
        "implementation:N", scale=alt.Scale(domain=list(DASHES), range=list(DASHES.values())), legend=None
    )


def key(names: list[str]) -> alt.LayerChart:
    """Names each implementation beside a piece of its line."""
    step = 190
    frame = pl.DataFrame(
        [
            {"implementation": name, "left": i * step, "right": i * step + 34, "text": i * step + 42}
            for i, name in enumerate(names)
        ]
    )
    place = alt.Scale(domain=[0, theme.WIDTH], nice=False)
    base = alt.Chart(frame, width=theme.WIDTH, height=18)
    line = base.mark_rule(strokeWidth=2, color=theme.INK).encode(
        x=alt.X("left:Q", scale=place, axis=None),
        x2="right:Q",
        strokeDash=dash(),
    )
    return line + base.mark_text(align="left").encode(
        x=alt.X("text:Q", scale=place, axis=None), text="implementation:N"
    )
