"""How a prompt is cut, in words."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import whole
from tokentrail.wording.words import (
    counted,
)


def cut(rows: pl.DataFrame) -> Markup:
    """How a prompt is cut. `rows`: tokens, one model and prompt."""
    if rows.is_empty():
        return Markup()
    added = rows.filter("special").height
    sentence = counted(rows.height, "token")
    if added:
        sentence += f", {whole(added)} of them added by the tokenizer"
    return Markup("{}.").format(sentence)
