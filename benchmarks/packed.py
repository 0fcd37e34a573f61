"""Packed weights against float32, in one process: ratios of decode time, bytes and resident memory.

    python benchmarks/packed.py                 SmolLM2, the Qwen3 shape and the Granite shape
    python benchmarks/packed.py smollm2         one of them

A ratio above 1 says that packed is faster than our own float32. All matrices are packed, the token table included,
and the head reads the packed table. `products` is a decode step's matrix products alone, with nothing between them:
no decode can gain more than they do. `of the formula` is the file over the payload that `quantize/payload.py` counts.
Resident memory is what a process grows by when the model is loaded and has read one token, each in a fresh process.
On SmolLM2, llama.cpp runs the GGUF file that the weights come from, if `llama-cpp-python` is installed: four bits
with middles in groups of 32, its token table in eight bits.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from models import checkpoint_of, random_ids
from tokentrail.allocator import keep_freed
from tokentrail.forward.frame import Model
from tokentrail.measure.rounds import Prepare, shuffled
from tokentrail.measure.timed_model import Ours
from tokentrail.quantize.packed import read_packed, write_packed
from tokentrail.quantize.parts import chosen
from tokentrail.quantize.payload import model_payload
from tokentrail.quantize.scheme import Scheme
from tokentrail.stages.quantization.quantization_timing import grown
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import load_model

SHAPES = ("smollm2", "qwen3-0.6b", "granite-4.0-h-350m")
SCHEMES = {
    "int4": Scheme(4, 32, scales="bfloat16"),
    "int4, group 64": Scheme(4, 64, scales="bfloat16"),
    "int4 with middles": Scheme(4, 32, symmetric=False, scales="bfloat16"),
    "int8": Scheme(8, "channel", scales="bfloat16"),
}
CONTEXT, STEPS, PREFILL = 64, 8, 128
FLOAT32 = "float32"


def loads(checkpoint: Checkpoint, folder: Path) -> dict[str, Callable[[], Model]]:
    """How each model is loaded; packed files are written to `folder` if they are not there."""
    spec = load_model(checkpoint).spec
    found = {FLOAT32: lambda: load_model(checkpoint), "bfloat16": lambda: load_model(checkpoint, torch.bfloat16)}
    for name, scheme in SCHEMES.items():
        path = folder / f"{name}.packed.safetensors"
        if not path.exists():
            write_packed(checkpoint, scheme, chosen(spec, ["all"]), path)
        formula = path.stat().st_size / model_payload(spec, scheme, chosen(spec, ["all"]))
        print(f"  {name:18s} {path.stat().st_size / 2**20:7.1f} MiB stored, {formula:.4f} of the formula", flush=True)
        found[name] = lambda path=path: read_packed(path)
    return found


@torch.inference_mode()
def compare(shape: str, rounds: int) -> None:
    print(f"\n{shape}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, reference = checkpoint_of(shape, Path(folder))
        del reference
        of_packed = loads(checkpoint, Path(folder))
        models = {name: load() for name, load in of_packed.items()}
        ids = random_ids(models[FLOAT32], PREFILL)
        cases: dict[str, Prepare] = {
            name: Ours(model).decode(ids[:, :CONTEXT], STEPS) for name, model in models.items()
        }
        alone: dict[str, Prepare] = {name: products(model, models[FLOAT32]) for name, model in models.items()}
        if shape == "smollm2":
            cases |= llama_cpp(checkpoint)
        found = medians(cases, rounds)
        for name, seconds in found.items():
            ratio = found[FLOAT32] / seconds
            print(f"  decode  {name:18s} {1e3 * seconds / STEPS:8.2f} ms a token   ratio {ratio:5.2f}", flush=True)
        for name, seconds in (found := medians(alone, rounds)).items():
            ratio = found[FLOAT32] / seconds
            print(f"  products {name:17s} {1e3 * seconds / STEPS:8.2f} ms a token   ratio {ratio:5.2f}", flush=True)
        found = medians({name: Ours(model).prefill(ids) for name, model in models.items()}, max(3, rounds // 2))
        for name, seconds in found.items():
            print(f"  prefill {name:18s} {1e3 * seconds:8.1f} ms   ratio {found[FLOAT32] / seconds:5.2f}", flush=True)
        del models, cases, alone
        resident_of(checkpoint, Path(folder))


def products(model: Model, float32: Model) -> Prepare:
    """Every matrix product of a decode step, STEPS times, each with a random row of its own."""
    dtype, pairs = model.final_norm.weight.dtype, zip(matrices(model), matrices(float32), strict=True)
    calls = [(product, torch.randn(1, 1, plain.weight.shape[1], dtype=dtype)) for product, plain in pairs]
    return lambda: lambda: [product(row) for _ in range(STEPS) for product, row in calls]


def matrices(model: Model) -> list[Callable]:
    """Every linear cell of a model but the convolutions, in the order in which a pass calls them."""
    parts = [part._asdict() for layer in model.layers for part in (layer.mixer, layer.ffn)]
    return [cell for part in parts for name, cell in part.items() if callable(cell) and name != "conv"] + [model.head]


def medians(cases: dict[str, Prepare], rounds: int) -> dict[str, float]:
    return {name: statistics.median(times) for name, times in shuffled(cases, rounds, seed=0).items()}


def resident_of(checkpoint: Checkpoint, folder: Path) -> None:
    """Each model in a process of its own, beside float32."""
    about = {"config": checkpoint.config, "files": [str(path) for path in checkpoint.tensor_files]}
    (folder / "checkpoint.json").write_text(json.dumps(about))
    took = {}
    for name in (FLOAT32, *SCHEMES):
        command = [sys.executable, __file__, "--resident", name, str(folder)]
        took[name] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for name, size in took.items():
        print(f"  resident {name:17s} {size / 2**20:8.0f} MiB   {size / took[FLOAT32]:.2f} of float32", flush=True)


@torch.inference_mode()
def resident(name: str, folder: Path) -> None:
    about = json.loads((folder / "checkpoint.json").read_text())
    checkpoint = Checkpoint(about["config"], tuple(map(Path, about["files"])), None, "", {})
    load = {FLOAT32: lambda: load_model(checkpoint)} | {
        scheme: lambda scheme=scheme: read_packed(folder / f"{scheme}.packed.safetensors") for scheme in SCHEMES
    }
    print(grown(load[name])[1])


def llama_cpp(checkpoint: Checkpoint) -> dict[str, Prepare]:
    """Decode steps of llama.cpp on the checkpoint's GGUF file, or nothing with a word."""
    try:
        from llama_cpp import Llama
    except ImportError:
        print("  llama.cpp: left out, llama-cpp-python is not installed")
        return {}
    (gguf,) = (path for name, path in checkpoint.files.items() if name.endswith(".gguf"))
    model = Llama(str(gguf), n_ctx=CONTEXT + STEPS, n_threads=torch.get_num_threads(), n_batch=CONTEXT, verbose=False)
    ids = random_ids_of(model.n_vocab())
    model.eval(ids)

    def prepare():
        model.n_tokens = CONTEXT  # what follows is dropped from its cache by the next call
        return lambda: [model.eval(ids[-1:]) for _ in range(STEPS)]

    return {"llama.cpp": prepare}


def random_ids_of(vocabulary: int) -> list[int]:
    return torch.randint(0, vocabulary, (CONTEXT,), generator=torch.Generator().manual_seed(CONTEXT)).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES, metavar="shape", help=f"among {', '.join(SHAPES)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=min(2, torch.get_num_threads()))
    parser.add_argument("--resident", metavar="name", help="what one model of a prepared folder takes, in bytes")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_freed()
    if asked.resident:
        resident(asked.resident, Path(asked.shapes[0]))
        return
    print(f"torch {torch.__version__}, {asked.threads} threads, {CONTEXT} tokens in the cache")
    for shape in asked.shapes:
        compare(shape, asked.rounds)


if __name__ == "__main__":
    main()
