"""Every single-mixer ablation of the published prompt, against the ways that others do it, in one process.

    python benchmarks/interventions.py               SmolLM2 and the Granite shape
    python benchmarks/interventions.py smollm2       one of them
    python benchmarks/interventions.py --many 10000  peak memory with that many variants, in a process of its own

Ours is the branching batch. The peers are transformers with a forward hook, one pass a mixer; TransformerLens' bridge
with `run_with_hooks`, one pass a mixer; and nnsight with one invoke a mixer, batched in one trace. A ratio above 1
says that ours is faster. `of the peak` counts the matrix products that the branching batch does, over the float32
matrix peak measured in the same process; `rows x layers` is how many passes through a layer that saves. A peer that
is not installed, or does not know the model, is left out with a word.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from models import checkpoint_of, random_ids
from rounds import interleaved, ratio
from tokentrail.allocator import give_back, keep_freed
from tokentrail.forward.frame import Model
from tokentrail.intervene.branching import run
from tokentrail.intervene.interventions import Intervention, Operation, Variant
from tokentrail.measure.limits import matrix_peak
from tokentrail.measure.reference import MIXERS, as_folder, layers_of, part_of
from tokentrail.measure.work import layer_products
from tokentrail.weights.load import load_model

TOKENS = 18  # the published prompt's
MEMORY = 2048 << 20
ZERO = Operation("zero")


def single_mixers(model: Model) -> list[Variant]:
    return [Variant(f"mixer {i}", (Intervention("mixer_out", (i,), ZERO),)) for i in range(len(model.spec.layers))]


def single_heads(model: Model) -> list[Variant]:
    return [
        Variant(f"head {i}.{h}", (Intervention("z", (i,), ZERO, heads=(h,)),))
        for i, layer in enumerate(model.spec.layers)
        for h in range(layer.mixer.heads)
    ]


def operations(model: Model, variants: list[Variant], tokens: int) -> int:
    """Floating-point operations in the matrix products of the branching batch, the clean pass included."""
    per_layer = layer_products(model.spec)
    rows = [1 + sum(v.first_layer <= i for v in variants) for i in range(len(per_layer))]
    head = model.head.weight.numel() * (1 + len(variants))
    return 2 * (sum(r * p * tokens for r, p in zip(rows, per_layer, strict=True)) + head)


def with_hooks(reference: torch.nn.Module, ids: torch.Tensor) -> Callable[[], torch.Tensor]:
    reference.set_attn_implementation("sdpa")

    def zero(module, given, out):
        return (torch.zeros_like(out[0]), *out[1:]) if isinstance(out, tuple) else torch.zeros_like(out)

    def go():
        rows = []
        for layer in layers_of(reference):
            hook = part_of(layer, MIXERS).register_forward_hook(zero)
            rows.append(reference(ids, use_cache=False, logits_to_keep=1).logits[0, -1])
            hook.remove()
        return torch.stack(rows)

    return go


def with_transformer_lens(reference: torch.nn.Module, ids: torch.Tensor, checkpoint) -> Callable[[], torch.Tensor]:
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint.tokenizer_file))
    with as_folder(checkpoint) as folder:
        bridge = TransformerBridge.boot_transformers(str(folder), hf_model=reference, tokenizer=tokenizer)
    count = len(layers_of(reference))

    def zero(out, hook):
        return torch.zeros_like(out)

    def go():
        passes = (
            bridge.run_with_hooks(ids, fwd_hooks=[(f"blocks.{i}.attn.hook_out", zero)], return_type="logits")
            for i in range(count)
        )
        return torch.stack([logits[0, -1] for logits in passes])

    return go


def with_nnsight(reference: torch.nn.Module, ids: torch.Tensor, checkpoint) -> Callable[[], torch.Tensor]:
    import nnsight
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint.tokenizer_file))
    model = nnsight.TransformersModel(reference, tokenizer=tokenizer)

    def go():
        with model.trace() as tracer:
            rows = list().save()  # noqa: C408 - a list that the trace saves
            for layer in model.model.layers:
                with tracer.invoke(ids):
                    layer.self_attn.output[0][:] = 0
                    rows.append(model.lm_head.output[0, -1])
        return torch.stack(list(rows))

    return go


@torch.inference_mode()
def compare(shape: str, rounds: int, peak: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, reference = checkpoint_of(shape, Path(folder))
        model = load_model(checkpoint, block=True)
        ids, mixers = random_ids(model, TOKENS), single_mixers(model)
        cases = {
            "ours": lambda: run(model, ids, mixers, MEMORY).logits,
            "transformers with hooks": with_hooks(reference, ids),
        }
        if shape == "smollm2":
            from tokentrail.measure.reference import open_reference

            for name, peer in (("TransformerLens bridge", with_transformer_lens), ("nnsight, batched", with_nnsight)):
                try:  # each wraps a model of its own: wrappers stay in a model's modules
                    cases[name] = peer(open_reference(checkpoint), ids, checkpoint)
                except ImportError as error:
                    print(f"  {name}: left out, {error}")
    expected = cases["ours"]()
    for name, go in cases.items():
        apart = (go() - expected).abs().max().item()
        assert apart < 1e-2, f"{name} says something else: {apart}"
    found = interleaved(cases, rounds)
    print(f"\n{shape}: {len(mixers)} single-mixer ablations, {TOKENS} tokens")
    for name, seconds in found.items():
        print(f"  {name:26s} {1000 * median(seconds):9.0f} ms   ratio {ratio(seconds, found['ours']):6.2f}")
    report(model, "all mixers", mixers, median(found["ours"]), peak)
    heads = single_heads(model)
    seconds = interleaved({"heads": lambda: run(model, ids, heads, MEMORY)}, max(2, rounds // 2))["heads"]
    report(model, "all heads ", heads, median(seconds), peak)


def report(model: Model, what: str, variants: list[Variant], seconds: float, peak: float) -> None:
    share = operations(model, variants, TOKENS) / seconds / peak
    full = len(variants) * len(model.spec.layers)
    branched = sum(len(model.spec.layers) - v.first_layer for v in variants)
    print(
        f"  {what}: {len(variants)} rows in {seconds:.2f} s, {1e3 * seconds / branched:.3f} ms a row and layer, "
        f"{share:.0%} of the peak; rows x layers {branched} of {full}"
    )


@torch.inference_mode()
def many(count: int) -> None:
    """Peak memory of `count` variants above the model's, beside the limit that was configured. Linux only."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, reference = checkpoint_of("smollm2", Path(folder))
        model = load_model(checkpoint, block=True)
        del reference
    ids, heads = random_ids(model, TOKENS), single_heads(model)
    variants = [heads[i % len(heads)] for i in range(count)]
    limit = 256 << 20
    logits = count * model.spec.vocabulary * 4
    gc.collect()
    give_back()
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far, which the reference took part in, is forgotten
    before = psutil.Process().memory_info().rss
    run(model, ids, variants, limit)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{count} variants: limit {limit >> 20} MiB and {logits >> 20} MiB of logits asked for; "
        f"peak {(peak - before) >> 20} MiB above the model"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=["smollm2", "granite-4.0-h-350m"], metavar="shape")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=min(2, torch.get_num_threads()))
    parser.add_argument("--many", type=int, metavar="variants", help="peak memory with that many variants")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_freed()
    if asked.many:
        many(asked.many)
        return
    peak = matrix_peak()
    print(f"torch {torch.__version__}, {asked.threads} threads; float32 matrix peak {peak / 1e9:.0f} GFLOP/s")
    for shape in asked.shapes:
        compare(shape, asked.rounds, peak)


if __name__ == "__main__":
    main()
