"""Prefill against transformers, in one process: ratios, beside what the machine can do at best.

    python benchmarks/forward.py                     every shape, about a quarter of an hour on two cores
    python benchmarks/forward.py granite-4.0-h-350m  one shape
    python benchmarks/forward.py --memory qwen3-0.6b peak memory of a load and a long prefill, in a process of its own

A ratio above 1 says that ours is faster than the faster of transformers' eager and sdpa attention. Both read the
last position's logits only, and our weights are blocked where that is worth it for so many tokens. The full shapes
have random weights; `smollm2` is the real model of the embedded run, from the weights cache. `decode.py` times
decoding.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from models import PUBLISHED, SHAPES, checkpoint_of, random_ids  # noqa: E402
from rounds import interleaved, verdict  # noqa: E402
from tokentrail.allocator import keep_freed  # noqa: E402
from tokentrail.forward.cells.linear import worth_blocking  # noqa: E402
from tokentrail.forward.families import read_spec  # noqa: E402
from tokentrail.forward.frame import Model, forward, last  # noqa: E402
from tokentrail.measure.limits import matrix_peak, read_bandwidth  # noqa: E402
from tokentrail.measure.work import parameter_bytes  # noqa: E402
from tokentrail.weights.checkpoint import Checkpoint  # noqa: E402
from tokentrail.weights.load import load_model  # noqa: E402

LENGTHS = (18, 105, 366, 1410)  # the published prompt with 0, 1, 4 and 16 fillers


def prefill_ratio(model: Model, reference: torch.nn.Module, tokens: int, rounds: int) -> str:
    ids = random_ids(model, tokens)

    def theirs(attention: str):
        def run():
            reference.set_attn_implementation(attention)
            return reference(ids, use_cache=False, logits_to_keep=1)

        return run

    found = interleaved(
        {"ours": lambda: forward(model, ids, read=last(ids)), "eager": theirs("eager"), "sdpa": theirs("sdpa")},
        rounds,
    )
    return f"prefill {tokens:5d} tokens   {verdict(found)}   {tokens / median(found['ours']):9.0f} tokens/s"


@torch.inference_mode()
def compare(shape: str, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, reference = checkpoint_of(shape, Path(folder))
        laid_out = functools.cache(lambda block: load_model(checkpoint, block=block))
        print(f"\n{shape}", flush=True)
        for tokens in LENGTHS:
            tokens = min(tokens, read_spec(checkpoint.config).learned_positions or tokens)
            print("  " + prefill_ratio(laid_out(worth_blocking(tokens)), reference, tokens, rounds), flush=True)


@torch.inference_mode()
def memory(shape: str) -> None:
    """Peak resident memory above an empty process, over the float32 weights and the logits asked for."""
    with tempfile.TemporaryDirectory() as folder:
        build_elsewhere(shape, folder)
        files = tuple(sorted(Path(folder).glob("*.safetensors")))
        config = json.loads(Path(folder, "config.json").read_text())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        model = load_model(Checkpoint(config, files, None, "", {}), block=True)
    tokens = model.spec.learned_positions or LENGTHS[-1]
    ids = random_ids(model, tokens)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    logits = forward(model, ids, read=last(ids))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    asked = parameter_bytes(model.spec) + logits.numel() * 4
    print(
        f"{shape}: weights and logits {asked / 2**20:.0f} MiB; peak of the load {(loaded - before) / asked:.2f} of it, "
        f"of a prefill of {tokens} tokens {(peak - before) / asked:.2f}"
    )


def build_elsewhere(shape: str, folder: str) -> None:
    """Write the random checkpoint from another process, so that its memory is not counted here."""
    code = f"from random_models import FULL_SHAPES, build; build(FULL_SHAPES[{shape!r}], {folder!r})"
    paths = f"import sys; sys.path[:0] = {[str(ROOT / 'workflow'), str(ROOT / 'tests')]!r}; "
    subprocess.run([sys.executable, "-c", paths + code], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES, metavar="shape", help=f"among {', '.join(SHAPES)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=min(2, torch.get_num_threads()))
    parser.add_argument("--memory", action="store_true", help="peak memory instead of time; one published shape")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_freed()
    if asked.memory and len(asked.shapes) == 1:
        memory(asked.shapes[0])
        return
    if asked.memory:  # a peak is a process's own
        for shape in asked.shapes:
            if shape in PUBLISHED:
                subprocess.run([sys.executable, __file__, "--memory", shape], check=True)
        return
    print(
        f"torch {torch.__version__}, {asked.threads} threads; float32 matrix peak {matrix_peak() / 1e9:.0f} GFLOP/s, "
        f"read bandwidth {read_bandwidth() / 1e9:.1f} GB/s"
    )
    for shape in asked.shapes:
        compare(shape, asked.rounds)


if __name__ == "__main__":
    main()
