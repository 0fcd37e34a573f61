"""The gate: a model whose pass is not that of the reference is not looked into."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tokentrail.errors import ParityError

LOST = 1e-4  # of a site's largest value: float32 rounding stays a hundred times below, a fault lies above


def gate(parity: pl.DataFrame, layers: pl.DataFrame, model: str, refused: Sequence[dict[str, str]] = ()) -> str:
    """A sentence that says by how much the model passed.

    Raises ParityError, naming the first layer and site that differ, if any logit differs by more than the
    tolerance, or if nothing was compared. `refused` is what parity could not ask of the model, as `tables.refused`.
    """
    if parity.is_empty():
        why = "; ".join(dict.fromkeys(row["reason"] for row in refused)) or "none is configured"
        raise ParityError(f"{model} was compared on no prompt: {why}. Give it one that it can be asked")
    worst = parity.sort("max_abs_logit_diff", descending=True, maintain_order=True).row(0, named=True)
    size, tolerance = worst["max_abs_logit_diff"], worst["tolerance"]
    if size <= tolerance:
        return f"{model}: largest logit difference {size:.3g}, tolerance {tolerance:g}, over {parity.height} positions"
    where = first_difference(layers)
    raise ParityError(
        f"{model} fails the parity gate: a logit of prompt {worst['prompt']} at position {worst['position']} differs "
        f"from transformers by {size:.3g}, above stages.parity.tolerance {tolerance:g}; {where}; "
        f"its later stages do not run"
    )


def first_difference(layers: pl.DataFrame) -> str:
    """The first site, in the order of the pass, where the passes part by more than rounding."""
    share = pl.col("max_abs_diff") / pl.col("max_abs_value").clip(lower_bound=1e-30)
    shares = layers.with_columns(share=share)
    lost = shares.filter(pl.col("share") > LOST)
    if not lost.is_empty():
        first = lost.row(0, named=True)
        return f"the first difference is at layer {first['layer']}, site {first['site']}"
    most = shares.sort("share", descending=True, maintain_order=True).row(0, named=True)
    return f"no single site parts by more than rounding, the most is at layer {most['layer']}, site {most['site']}"
