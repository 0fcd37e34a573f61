"""The cell tables of all models beside each other."""

from __future__ import annotations

from typing import Any

import polars as pl


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The cell table turned: one entry for each part, with one list of cells for each model.

    Quantities that every model has stand in rows of their own; cells that only some have share a row by their part,
    so that a mixer stands beside a mixer.
    """
    frame = tables["cells"]
    present = [name for name in settings["models"] if name in set(frame["model"])]
    common = {
        (part, cell)
        for part, cell, count in frame.group_by("part", "cell").agg(pl.col("model").n_unique()).iter_rows()
        if count == len(present) and part in ("size", "embed", "residual")
    }
    rows: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
    for row in frame.to_dicts():
        alone = (row["part"], row["cell"]) in common
        key = (row["part"], row["cell"] if alone else "")
        entry = {"cell": "" if alone else row["cell"], "layers": row["layers"], "detail": row["detail"]}
        rows.setdefault(key, {name: [] for name in present}).setdefault(row["model"], []).append(entry)
    return [
        {
            "part": part,
            "what": what,
            "models": [found[name] for name in present],
            "differs": any(found[name] != found[present[0]] for name in present),
        }
        for (part, what), found in rows.items()
    ]
