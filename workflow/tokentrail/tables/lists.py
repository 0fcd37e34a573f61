"""The tables of a run by name: those that a run makes, and what is special about some of them.

No stage imports this module: it would run again whenever a table is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokentrail.tables.registry import schema_of

if TYPE_CHECKING:
    from tokentrail.declare.columns import Table

SPANNING = ("reproduction",)
"""The tables that hold all models' rows in one file; every other table is one model's."""


TABLES: dict[str, type[Table]] = {
    name: schema_of(name)
    for name in (
        "weights",
        "cells",
        "census",
        "tokens",
        "parity",
        "parity_layers",
        "next_token",
        "distribution",
        "name_swaps",
        "name_swaps_summary",
        "reproduction",
        "lens",
        "residual",
        "ablations",
        "filler_sweep",
        "long_range",
        "patching",
        "attribution",
        "mixing",
        "attention",
        "sink",
        "cache",
        "timing",
        "timing_summary",
        "machine",
        "cost",
        "quantization_quality",
        "quantization_timing",
        "quantization",
        "quantization_error",
        "merges",
        "geometry",
        "positions",
        "block",
        "mlp",
        "arithmetic",
    )
}


TIMED = ("timing", "timing_summary", "machine", "cost", "quantization_timing", "quantization")
"""The tables that hold or come from wall-clock times: the only ones in which two runs of one input may differ."""


REFERENCE_TABLES: dict[str, type[Table]] = {name: schema_of(name) for name in ("training", "evaluation")}
"""Tables of the reference models, which no run makes: their own rules do."""
