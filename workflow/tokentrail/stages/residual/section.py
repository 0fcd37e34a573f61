"""How the stream grows, in words."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import size
from tokentrail.wording.claims import leading


def growth(rows: pl.DataFrame) -> Markup:
    """How the stream grows at the last position. `rows`: residual at the last position, one model and prompt."""
    stream = rows.filter(pl.col("site") == "resid_post").sort("layer")
    if stream.is_empty():
        return Markup()
    first, last = stream.row(0, named=True), stream.row(-1, named=True)
    if stream.height == 1:
        return Markup("The stream's length after its one layer is {}.").format(size(first["l2_norm"]))
    peak = leading(stream, "l2_norm").row(-1, named=True)
    sentence = Markup("The stream's length goes from {} after layer {} to {} after layer {}").format(
        size(first["l2_norm"]), first["layer"], size(last["l2_norm"]), last["layer"]
    )
    if peak["layer"] == last["layer"]:
        return sentence + ", where it is largest."
    return sentence + Markup("; it is largest after layer {}, at {}.").format(peak["layer"], size(peak["l2_norm"]))
