"""Every table by its name."""

from __future__ import annotations

from tokentrail.tables.anatomy import Arithmetic, Block, Geometry, Merges, Mlp, Positions
from tokentrail.tables.columns import Table
from tokentrail.tables.interventions import (
    Ablations,
    AttentionRows,
    Attribution,
    FillerSweep,
    LongRange,
    Mixing,
    Patching,
    Sink,
)
from tokentrail.tables.models import Cells, Census, Parity, ParityLayers, Tokens, Weights
from tokentrail.tables.published import Reproduction
from tokentrail.tables.quantization import Quantization, QuantizationErrors, QuantizationQuality, QuantizationTiming
from tokentrail.tables.reference import Evaluation, Training
from tokentrail.tables.times import CacheSteps, Cost, Machine, Timing, TimingSummary
from tokentrail.tables.trace import Distribution, Lens, NameSwaps, NameSwapsSummary, NextToken, Residual

SPANNING = ("reproduction",)
"""The tables that hold all models' rows in one file; every other table is one model's."""


TABLES: dict[str, type[Table]] = {
    "weights": Weights,
    "cells": Cells,
    "census": Census,
    "tokens": Tokens,
    "parity": Parity,
    "parity_layers": ParityLayers,
    "next_token": NextToken,
    "distribution": Distribution,
    "name_swaps": NameSwaps,
    "name_swaps_summary": NameSwapsSummary,
    "reproduction": Reproduction,
    "lens": Lens,
    "residual": Residual,
    "ablations": Ablations,
    "filler_sweep": FillerSweep,
    "long_range": LongRange,
    "patching": Patching,
    "attribution": Attribution,
    "mixing": Mixing,
    "attention": AttentionRows,
    "sink": Sink,
    "cache": CacheSteps,
    "timing": Timing,
    "timing_summary": TimingSummary,
    "machine": Machine,
    "cost": Cost,
    "quantization_quality": QuantizationQuality,
    "quantization_timing": QuantizationTiming,
    "quantization": Quantization,
    "quantization_error": QuantizationErrors,
    "merges": Merges,
    "geometry": Geometry,
    "positions": Positions,
    "block": Block,
    "mlp": Mlp,
    "arithmetic": Arithmetic,
}


TIMED = ("timing", "timing_summary", "machine", "cost", "quantization_timing", "quantization")
"""The tables that hold or come from wall-clock times: the only ones in which two runs of one input may differ."""


# Tables of the reference models, which no run makes: their own rules do.
REFERENCE_TABLES: dict[str, type[Table]] = {"training": Training, "evaluation": Evaluation}


def schema_of(table: str) -> type[Table]:
    return (TABLES | REFERENCE_TABLES)[table]
