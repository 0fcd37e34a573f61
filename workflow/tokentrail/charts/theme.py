"""The look of every chart: one configuration, and the pieces that charts are put together from."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from tokentrail.charts.colour import PAPER
from tokentrail.charts.looks import looks
from tokentrail.charts.text import shorten

# Arial, Helvetica and Liberation Sans have the same widths, so a layout measured with one holds with the others.
FONT = "Arial, Helvetica, Liberation Sans, sans-serif"
INK, MUTED, FAINT, GRID = "#1c2430", "#566072", "#a9b1bd", "#e6e9ee"
"""Of text, of lesser text and grey marks, of axes, frames and stems, of what lies behind the marks."""
ALERT = "#a61b1b"
WIDTH = 720
"""Width of a whole chart's drawing areas, in pixels."""

CONFIG: dict[str, Any] = {
    "font": FONT,
    "background": PAPER,
    "padding": 12,
    "view": {"stroke": None},
    "concat": {"spacing": 24},
    "title": {
        "anchor": "start",
        "frame": "group",
        "color": INK,
        "fontSize": 13,
        "fontWeight": "bold",
        "subtitleColor": MUTED,
        "subtitleFontSize": 12,
        "subtitlePadding": 4,
        "subtitleLineHeight": 15,
        "offset": 8,
    },
    "axis": {
        "labelColor": MUTED,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "grid": True,
        "gridColor": GRID,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
    },
    "axisX": {
        "domain": True,
        "domainColor": FAINT,
        "ticks": True,
        "tickColor": FAINT,
        "tickSize": 4,
        "labelFlush": False,
    },
    "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12},
    "text": {"color": INK, "fontSize": 12},
}


def drawn(frame: pl.DataFrame, settings: dict[str, Any]) -> list[str]:
    """The configured models that have rows, in the configuration's order."""
    present = set(frame["model"])
    return [name for name in settings["models"] if name in present]


def scale(settings: dict[str, Any], attribute: str) -> alt.Scale:
    """`colour`, `ink`, `dash` or `shape` of the column `model`."""
    of = looks(settings)
    return alt.Scale(domain=list(of), range=[getattr(look, attribute) for look in of.values()])


def columns(panels: int) -> int:
    """Panels side by side: at most three, and four as two rows of two."""
    return {1: 1, 2: 2, 4: 2}.get(panels, 3)


def panel_width(side_by_side: int, room: int = 46) -> int:
    """Width of each of some panels side by side, with `room` pixels between them."""
    return (WIDTH - room * (side_by_side - 1)) // side_by_side


def heading(text: str, subtitle: str | list[str] = "") -> alt.TitleParams:
    return alt.TitleParams(text=text, subtitle=subtitle) if subtitle else alt.TitleParams(text=text)


def grid(panels: Sequence[alt.TopLevelMixin], side_by_side: int) -> alt.TopLevelMixin:
    """Panels in rows; scales are each panel's own, so that a domain is what the panel says."""
    independent = alt.ScaleResolveMap(x="independent", y="independent")
    return alt.concat(*panels, columns=side_by_side, resolve=alt.Resolve(scale=independent))


def key(settings: dict[str, Any], models: list[str], dashed: bool = True) -> alt.LayerChart:
    """Names each model beside a piece of its line with its mark; not `dashed` where dashes mean something else."""
    of = looks(settings)
    entries, left, row = [], 0, 0
    for name in models:
        label = shorten(of[name].label, 60)
        width = 38 + 7 * len(label)
        if left and left + width > WIDTH:
            left, row = 0, row + 1
        entries.append({"model": name, "label": label, "left": left, "row": row})
        left += width + 20
    frame = pl.DataFrame(entries).with_columns(
        right=pl.col("left") + 30, middle=pl.col("left") + 15, text=pl.col("left") + 38
    )
    place = alt.Scale(domain=[0, WIDTH], nice=False)
    base = alt.Chart(frame, width=WIDTH, height=alt.Step(18)).encode(y=alt.Y("row:O", axis=None))
    colour = alt.Color("model:N", scale=scale(settings, "colour"), legend=None)
    line = base.mark_rule(strokeWidth=2.5).encode(x=alt.X("left:Q", scale=place, axis=None), x2="right:Q", color=colour)
    if dashed:
        line = line.encode(strokeDash=alt.StrokeDash("model:N", scale=scale(settings, "dash"), legend=None))
    mark = base.mark_point(size=60, filled=True, opacity=1, stroke=PAPER, strokeWidth=1).encode(
        x=alt.X("middle:Q", scale=place, axis=None),
        color=colour,
        shape=alt.Shape("model:N", scale=scale(settings, "shape"), legend=None),
    )
    return line + mark + base.mark_text(align="left").encode(x=alt.X("text:Q", scale=place, axis=None), text="label:N")


def keyed(body: alt.TopLevelMixin, settings: dict[str, Any], models: list[str]) -> alt.TopLevelMixin:
    """The body, below the key of the models if there are several."""
    return alt.vconcat(key(settings, models), body, spacing=8) if len(models) > 1 else body


def without(body: alt.TopLevelMixin, said: str, settings: dict[str, Any], models: list[str]) -> alt.TopLevelMixin:
    """The body, and below it the configured models that are not among `models`, with the reason."""
    left_out = [look.label for name, look in looks(settings).items() if name not in models]
    if not left_out:
        return body
    lines = textwrap.wrap(f"{said}: {', '.join(left_out)}", 110)
    frame = pl.DataFrame({"row": range(len(lines)), "line": lines})
    note = alt.Chart(frame, width=WIDTH, height=alt.Step(16)).mark_text(align="left", color=MUTED)
    return alt.vconcat(body, note.encode(x=alt.value(0), y=alt.Y("row:O", axis=None), text="line:N"), spacing=14)


def line_width(prompts: int) -> float:
    """Of a line of one prompt among so many; a line is made thin and not pale, for pale it would not be seen."""
    return 1.5 if prompts == 1 else 0.9


def decades(low: float, high: float) -> list[float]:
    """Tick values of a logarithmic axis: the powers of ten, and what lies between them if those are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if math.log10(high / low) > 2.5 else (1, 3)
    ticks = [float(f"{step}e{power}") for power in powers for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def log_axis(title: str, domain: tuple[float, float], floor: float, shown: bool = True) -> alt.Axis:
    """A logarithmic axis on which `floor` also stands for everything below it; not `shown`, its lines alone."""
    label = f"datum.value <= {floor} ? '≤ ' + datum.label : datum.label"
    title = title if shown else None
    return alt.Axis(title=title, values=decades(*domain), format="~g", labels=shown, labelExpr=label)


def nothing(message: str) -> alt.Chart:
    """A chart for what was not configured: it says so."""
    frame = pl.DataFrame({"message": [message]})
    chart = alt.Chart(frame, width=WIDTH, height=40, description=message)
    return chart.mark_text(color=MUTED, fontSize=12).encode(text="message:N")


def finish(
    chart: alt.TopLevelMixin, title: str, caption: str, settings: dict[str, Any], result: str | None = None
) -> alt.TopLevelMixin:
    """The chart with its title, what must be known of each model's weights, its caption and the theme.

    `result` says in words what the chart shows, for those who do not see it; without one, its message does.
    """
    of = looks(settings).values()
    notes = [f"{look.label}: {look.note}" if look.note else look.label for look in of if look.note or len(of) == 1]
    subtitle = [line for note in notes for line in textwrap.wrap(note, 110)]
    params = alt.TitleParams(text=title, subtitle=subtitle, fontSize=16, offset=14, frame="bounds")
    # Set in place: `properties` copies the chart, and copying takes longer than drawing.
    chart.title, chart.config, chart.usermeta = params, CONFIG, {"caption": " ".join(caption.split())}
    chart.description = f"{title if title.endswith('?') else f'{title}:'} {result or chart.description}"
    return chart
