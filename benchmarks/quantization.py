"""The full simulated sweep of SmolLM2 on both passages, timed: every scheme that was published, and better ones.

    python benchmarks/quantization.py            prints each row as it is made
    python benchmarks/quantization.py --settings the settings, as a block for a configuration

The sweep is that of the stage `quantization_quality`, in one process, from opening the checkpoint to the table.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import polars as pl
import torch
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))

from models import ROOT
from tokentrail import config
from tokentrail.allocator import keep_freed
from tokentrail.stages.quantization import quantization_quality
from tokentrail.weights.fetch import fetch
from tokentrail.weights.load import load

PASSAGES = {name: str(ROOT / f"resources/passages/{name}.txt") for name in ("tide_mill", "island_survey")}
SCHEMES = {
    **{f"q{bits}-64": {"bits": bits, "group_size": 64} for bits in (8, 6, 4, 3, 2)},
    **{f"q4-{size}": {"bits": 4, "group_size": size} for size in (16, 32, 128)},
    "q4-1024": {"bits": 4, "group_size": 1024, "grouping": "flattened"},
    "q4-channel": {"bits": 4, "group_size": "channel"},
    **{f"q8-{size}": {"bits": 8, "group_size": size} for size in (16, 256)},
    "q4-half-range": {"bits": 4, "group_size": 64, "divisor": "half_range"},
    "q4-stored-order": {"bits": 4, "group_size": 64, "grouping": "flattened"},
    "q4-each": {"bits": 4, "group_size": 64, "one_at_a_time": True},
    "q4-compute": {"bits": 4, "group_size": 64, "weights": ["compute"]},
    "q4-careful": {"bits": 4, "group_size": 32, "weights": ["compute"]},
    "q4-table-in": {"bits": 4, "group_size": 64, "weights": ["tokens.input"]},
    "q4-table-out": {"bits": 4, "group_size": 64, "weights": ["tokens.output"]},
    "q4-asymmetric": {"bits": 4, "group_size": 32, "symmetric": False},
    "q4-search": {"bits": 4, "group_size": 64, "scale": "search"},
    "q4-outliers": {"bits": 4, "group_size": 64, "outliers": 0.002},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=min(2, torch.get_num_threads()))
    parser.add_argument("--settings", action="store_true", help="print the settings and end")
    asked = parser.parse_args()
    block = {"prompt": "capital-france", "passages": PASSAGES, "schemes": SCHEMES}
    if asked.settings:
        print(yaml.safe_dump({"stages": {"quantization": block}}, sort_keys=False))
        return
    torch.set_num_threads(asked.threads)
    keep_freed()
    raw = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))
    raw["stages"]["quantization"] = block
    parsed = config.parse(raw)
    name = next(iter(parsed.models))
    asked_weights = config.settings(parsed, "weights", name)
    weights = fetch(name, asked_weights["source"], asked_weights["license"], ROOT / asked_weights["lock_file"])
    start = time.perf_counter()
    settings = config.settings(parsed, "quantization_quality", name)
    table = quantization_quality.measure(load(weights, settings, block=False), settings)
    took = time.perf_counter() - start
    shown = table.filter(passage=next(iter(PASSAGES)))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(shown.select("scheme", "families", "compression", "kl", "perplexity", "mean_kl", "top1_agreement"))
    simulated = table.filter(execution="simulated").height // len(PASSAGES)
    positions = sum(shown["positions"][0] for shown in table.partition_by("passage"))
    print(f"{simulated} simulated schemes on {positions} positions: {took:.0f} s on {asked.threads} threads")


if __name__ == "__main__":
    main()
