"""However many variants there are, a run stays within the memory that it was given, beside the logits asked for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from random_models import FULL_SHAPES

FORGET = Path("/proc/self/clear_refs")  # a 5 written here forgets the peak so far; proc_pid_clear_refs(5)
LIMIT, COUNT = 96 << 20, 200
SHAPES = {
    "qwen3": FULL_SHAPES["qwen3-0.6b"] | {"vocab_size": 8192, "num_hidden_layers": 6},
    "gpt2": FULL_SHAPES["gpt2"] | {"vocab_size": 8192, "n_layer": 6},
    "hybrid": FULL_SHAPES["granite-4.0-h-350m"]
    | {"vocab_size": 8192, "num_hidden_layers": 6, "layer_types": ["mamba", "mamba", "attention"] * 2},
}

RUN = """
import json, sys
from pathlib import Path
import psutil, torch
from tokentrail.allocator import give_back, keep_freed
from tokentrail.forward import spec as specs
from tokentrail.forward.assemble import assemble
from tokentrail.forward.shapes import shapes
from tokentrail.forward.families import read_spec
from tokentrail.intervene.branching import run
from tokentrail.intervene.interventions import Intervention, Operation, Variant

config, site, count, limit = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
keep_freed()
spec = read_spec(config)
sizes = shapes(spec)
model = assemble(spec, lambda name: torch.randn(sizes[name]) * 0.02 if name in sizes else None, block=True)
place = {"pattern": {"heads": (0,), "positions": (3,)}, "ssm_state": {"positions": (3,)}}.get(site, {})
kind = specs.Mamba2 if site == "ssm_state" else specs.Attention if site == "pattern" else object
layers = [i for i, layer in enumerate(spec.layers) if isinstance(layer.mixer, kind)]
what = Operation("mask" if site == "pattern" else "zero")
edits = [Intervention(site, (layer,), what, **place) for layer in layers]
variants = [Variant(str(i), (edits[i % len(edits)],)) for i in range(count)]
ids = torch.arange(18)[None]

def peak(variants):
    give_back()
    Path("/proc/self/clear_refs").write_text("5")
    before = psutil.Process().memory_info().rss
    run(model, ids, variants, limit)
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 - before

with torch.inference_mode():
    run(model, ids, variants, limit)  # oneDNN keeps what it compiled for each number of rows, and that is no variant's
    print(peak(variants), count * spec.vocabulary * 4)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.access(FORGET, os.W_OK), reason="this system cannot forget a peak")
@pytest.mark.parametrize(
    ("shape", "site"),
    [
        ("qwen3", "z"),
        ("qwen3", "pattern"),
        ("gpt2", "resid_pre"),
        ("hybrid", "z"),
        ("hybrid", "ssm_state"),
    ],
)
def test_the_peak_stays_within_the_limit_and_the_logits_asked_for(shape, site):
    arguments = [json.dumps(SHAPES[shape]), site, str(COUNT), str(LIMIT)]
    said = subprocess.run([sys.executable, "-c", RUN, *arguments], check=True, capture_output=True, text=True).stdout
    peak, logits = map(int, said.split())
    print(f"{shape} {site}: {peak >> 20} of {(LIMIT + logits) >> 20} MiB")
    assert peak <= LIMIT + logits
