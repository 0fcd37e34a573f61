"""How close ours is to the reference, in sentences."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from tokentrail.charts.text import size, whole
from tokentrail.wording.words import (
    counted,
    power,
)


def parity(rows: pl.DataFrame) -> Markup:
    """How close ours and the reference are. `rows`: parity, one model."""
    if rows.is_empty():
        return Markup()
    worst, tolerance = rows["max_abs_logit_diff"].max(), rows["tolerance"].max()
    passed = worst <= tolerance
    verdict = "below" if worst < tolerance else "at" if passed else "above"
    sentence = Markup(
        "Over {} of {}, the largest difference in any logit between this workflow and transformers is {}, "
        "{} the tolerance of {}"
    ).format(
        counted(rows.height, "position"),
        counted(rows["prompt"].n_unique(), "prompt"),
        power(worst),
        verdict,
        power(tolerance),
    )
    return sentence + ("." if passed else ": this model fails the gate, and no number of it should be used.")


def agreement(rows: pl.DataFrame) -> Markup:
    """Whether both name the same first tokens. `rows`: parity, one model."""
    if rows.is_empty():
        return Markup()
    disagreeing = rows.filter(~pl.col("top1_agrees")).height
    if disagreeing == 0:
        return Markup("Both name the same first token at every position.")
    return Markup("They name different first tokens at {} of {}.").format(
        whole(disagreeing), counted(rows.height, "position")
    )


def budget(rows: pl.DataFrame) -> Markup:
    """The error budget in words. `rows`: parity, one model."""
    if rows.is_empty():
        return Markup()
    ours, reference = rows["max_abs_error_ours"].max(), rows["max_abs_error_reference"].max()
    return Markup(
        "Against the same pass in float64, float32 rounding alone moves this workflow by up to {} and transformers by "
        "up to {}; the largest logit is {}."
    ).format(power(ours), power(reference), size(rows["max_abs_logit"].max()))
