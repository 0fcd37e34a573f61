"""Maps: squares whose shade is a number, with tokens along their axes."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from tokentrail.charts import text, theme

# The two ends differ in lightness too, so that in greyscale the dark end still is the dark end.
BELOW, ABOVE = "#0b2a63", "#cc7f0c"
DEEP = "#12336b"
LABEL = 11
"""Font size of the tokens along an axis."""
MOST_TOKENS = 27
"""Beyond these, the axis of a map counts positions and does not name tokens."""


def diverging(limit: float) -> alt.Scale:
    """Shades of a number that is centred on zero; values beyond the limit take the shade of the end."""
    return alt.Scale(domain=[-limit, 0, limit], range=[BELOW, theme.PAPER, ABOVE], interpolate="lab", clamp=True)


def sequential(top: float) -> alt.Scale:
    return alt.Scale(domain=[0, top], range=[theme.PAPER, DEEP], interpolate="lab", clamp=True)


def bar(title: str, values: Sequence[float], length: int, form: str = "~g", offset: int = 10) -> alt.Legend:
    """The key of the shades, `offset` pixels below the map."""
    return alt.Legend(
        title=title,
        orient="bottom",
        direction="horizontal",
        gradientLength=length,
        gradientThickness=9,
        values=list(values),
        format=form,
        titleFontWeight="normal",
        titleFontSize=12,
        titleLimit=length + 120,
        labelFontSize=12,
        labelColor=theme.MUTED,
        titleColor=theme.INK,
        gradientStrokeColor=theme.FAINT,
        gradientStrokeWidth=0.5,
        offset=offset,
    )


def squares(
    frame: pl.DataFrame, x: alt.X, y: alt.Y, fill: alt.Color, tooltip: list[alt.Tooltip], line: str | None = theme.GRID
) -> alt.Chart:
    """One square for each row, with a hairline around it unless `line` is None."""
    return alt.Chart(frame).mark_rect(stroke=line, strokeWidth=0.5).encode(x=x, y=y, color=fill, tooltip=tooltip)


def label_room(tokens: pl.DataFrame) -> int:
    """Pixels that the tokens below a map need."""
    longest = max((len(shown) for shown in shown_tokens(tokens)["shown"]), default=0)
    return round(0.5 * LABEL * longest) + 10


def shown_tokens(tokens: pl.DataFrame) -> pl.DataFrame:
    """Position and label of each token that is named."""
    if tokens.height > MOST_TOKENS:
        every = -(-tokens.height // 20)
        named = tokens.filter(pl.col("position") % every == 0).with_columns(shown=pl.col("position").cast(pl.String))
    else:
        named = tokens.with_columns(
            shown=pl.col("token").map_elements(lambda t: text.shorten(text.visible(t), 11), pl.String)
        )
    return named.select("position", "shown")


def token_labels(
    tokens: pl.DataFrame,
    position: str,
    axis: str,
    height: int,
    colour: str = theme.MUTED,
    weight: str = "normal",
) -> alt.Chart:
    """Tokens along the x or the y axis of a map that is `height` pixels high.

    `tokens` has a position and a token; `position` names the map's field for the former. The tokens are drawn as data
    and never become part of the specification.
    """
    base = alt.Chart(shown_tokens(tokens).rename({"position": position}))
    look = {"baseline": "middle", "fontSize": LABEL, "color": colour, "fontWeight": weight}
    if axis == "x":
        mark = base.mark_text(angle=270, align="right", **look)
        return mark.encode(x=alt.X(f"{position}:O"), y=alt.value(height + 7), text="shown:N")
    mark = base.mark_text(align="right", dx=-6, **look)
    return mark.encode(x=alt.value(0), y=alt.Y(f"{position}:O"), text="shown:N")
