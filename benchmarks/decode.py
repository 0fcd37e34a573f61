"""Decode against transformers, in one process: ratios, and the share of the read bandwidth that is reached.

    python benchmarks/decode.py             every shape
    python benchmarks/decode.py qwen3-0.6b  one shape

A ratio above 1 says that ours is faster than the faster of transformers' eager and sdpa attention. The share of the
bandwidth counts every byte that a step must read once (weights, keys and values, states) over the read bandwidth
that the same process measures. Caches are filled once and set back before every measurement.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from models import SHAPES, checkpoint_of
from rounds import prepared, verdict
from tokentrail.allocator import keep_freed
from tokentrail.forward.frame import Model
from tokentrail.measure.limits import matrix_peak, read_bandwidth
from tokentrail.measure.reference import Transformers
from tokentrail.measure.timed_model import Ours, random_ids
from tokentrail.measure.work import work
from tokentrail.weights.load import load_model

CASES = ((1, 64), (1, 1000), (8, 64), (8, 1000))  # rows, tokens in the cache
STEPS = 4  # decode steps in one measurement


def decode(model: Model, reference: torch.nn.Module, rows: int, context: int, rounds: int, bandwidth: float) -> str:
    ids = random_ids(model.spec.vocabulary, rows, context)
    peers = {attention: Transformers(reference, attention) for attention in ("eager", "sdpa")}
    contenders = {"ours": Ours(model)} | peers
    found = prepared({name: each.decode(ids, STEPS) for name, each in contenders.items()}, rounds)
    step = median(found["ours"]) / STEPS
    read = work(model.spec, rows, context, 1).least_bytes / step
    return (
        f"{rows} row(s) at {context:5d}   {verdict(found)}   {1000 * step:8.2f} ms a step, "
        f"{read / 1e9:5.1f} GB/s, {read / bandwidth:.0%} of the bandwidth"
    )


@torch.inference_mode()
def compare(shape: str, rounds: int, bandwidth: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, reference = checkpoint_of(shape, Path(folder))
        model = load_model(checkpoint, decode=True)
    print(f"\n{shape}", flush=True)
    for rows, context in CASES:
        print("  " + decode(model, reference, rows, context, rounds, bandwidth), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES, metavar="shape", help=f"among {', '.join(SHAPES)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=min(2, torch.get_num_threads()))
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_freed()
    bandwidth = read_bandwidth()
    print(
        f"torch {torch.__version__}, {asked.threads} threads; float32 matrix peak {matrix_peak() / 1e9:.0f} GFLOP/s, "
        f"read bandwidth {bandwidth / 1e9:.1f} GB/s"
    )
    for shape in asked.shapes:
        compare(shape, asked.rounds, bandwidth)


if __name__ == "__main__":
    main()
