"""`cache`: every call made once more here, ours and transformers', and every byte counted from config.json."""

from __future__ import annotations

import pytest
import torch
import transformers
from column_checks import recomputes
from definitions import in_order, last_logits, mean, run
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import forward
from tokentrail.stages.cache import measure as cache
from tokentrail.weights.load import load_model

STEPS, PIECES = 3, [2, 4]


@pytest.fixture(scope="module")
def models(tiny):
    """Ours in bfloat16, so that its cached pass is visibly apart from its full one, transformers' own, and float64."""
    reference = transformers.AutoModelForCausalLM.from_pretrained(
        tiny.folder, dtype=torch.float32, attn_implementation="eager"
    )
    return tiny.fresh(torch.bfloat16), reference.eval(), load_model(tiny.checkpoint, torch.float64)


@recomputes(
    "cache",
    *("prompt", "kind", "piece", "step", "token", "tokens", "max_abs_logit_diff", "mean_abs_logit_diff", "top1_agrees"),
    *("reference_max_abs_logit_diff", "reference_mean_abs_logit_diff", "reference_top1_agrees", "max_abs_error_ours"),
    *("max_abs_error_ours_full", "max_abs_error_reference", "max_abs_error_reference_full", "cache_tokens", "kv_bytes"),
    *("conv_bytes", "state_bytes", "formula_bytes", "reserved_bytes"),
    key=("prompt", "kind", "piece", "step"),
    rel=1e-4,
    close=2e-6,
)
def test_cache(tiny, models):
    loaded, reference, truth = models
    rows, continued = [], {}
    for prompt, ids, _ in tiny.prompts():
        own = len(ids)
        for _ in range(STEPS):
            ids = [*ids, in_order(last_logits(loaded.model, ids))[0]]
        continued[prompt] = ids
        schedules = {("decode", 1): [own] + [1] * STEPS, ("continuation", STEPS): [own, STEPS]}
        for piece in (*PIECES, own):
            size = min(piece, own)
            schedules["chunked_prefill", size] = [min(size, own - start) for start in range(0, own, size)]
        for (kind, piece), sizes in schedules.items():
            end = sum(sizes)
            ours, theirs = cached(tiny, loaded.model, ids, sizes), cached_by_reference(reference, ids, sizes)
            start = 0
            for step, size in enumerate(sizes):
                stop = start + size
                whole = ids[: stop if kind == "decode" else end]
                compared = {
                    "ours": ours[start:stop],
                    "ours_full": run(loaded.model, whole).tolist()[start:stop],
                    "reference": theirs[start:stop],
                    "reference_full": full_of_reference(reference, whole)[start:stop],
                    "truth": run(truth, ids).tolist()[start:stop],
                }
                about = {"prompt": prompt, "kind": kind, "piece": piece, "step": step, "tokens": size}
                about |= {"token": tiny.text_of(ids[stop - 1])}
                rows.append(about | apart(**compared) | bytes_of(tiny, stop, end))
                start = stop
    rows += of_a_batch(tiny, models, continued)
    return cache.measure(loaded, tiny.settings(steps=STEPS, pieces=PIECES)), rows


def of_a_batch(tiny, models, continued):
    loaded, reference, truth = models
    lengths = [len(ids) - STEPS for ids in continued.values()]
    longest = max(lengths)
    calls = [
        torch.tensor([ids[:-STEPS] + [0] * (longest - n) for ids, n in zip(continued.values(), lengths, strict=True)])
    ]
    calls += [
        torch.tensor([[ids[n + step]] for ids, n in zip(continued.values(), lengths, strict=True)])
        for step in range(STEPS)
    ]
    ours, theirs = [], []
    held = new_cache(loaded.model.spec, len(lengths), longest + STEPS, torch.bfloat16)
    with torch.inference_mode():
        for step, call in enumerate(calls):
            ours.append(forward(loaded.model, call, held, torch.tensor(lengths) if step == 0 else None))
        left = torch.tensor([[0] * (longest - n) + ids[:n] for ids, n in zip(continued.values(), lengths, strict=True)])
        mask = torch.tensor([[0] * (longest - n) + [1] * n for n in lengths])
        positions = torch.tensor([[0] * (longest - n) + list(range(n)) for n in lengths])
        said = reference(left, attention_mask=mask, position_ids=positions, use_cache=True)
        theirs.append(said.logits)
        for step, call in enumerate(calls[1:]):
            mask = torch.cat([mask, torch.ones_like(call)], dim=1)
            positions = torch.tensor([[n + step] for n in lengths])
            kept = {"attention_mask": mask, "position_ids": positions, "use_cache": True}
            said = reference(call, **{CACHE: getattr(said, CACHE)}, **kept)
            theirs.append(said.logits)
    rows = []
    for row, (prompt, ids) in enumerate(continued.items()):
        for step in range(len(calls)):
            end = lengths[row] + step
            at = lengths[row] - 1 if step == 0 else 0
            compared = {
                "ours": [ours[step][row, at].tolist()],
                "ours_full": [run(loaded.model, ids[:end])[-1].tolist()],
                "reference": [theirs[step][row, -1].tolist()],
                "reference_full": [full_of_reference(reference, ids[:end])[-1]],
                "truth": [run(truth, ids)[end - 1].tolist()],
            }
            about = {"prompt": prompt, "kind": "batch", "piece": 1, "step": step}
            about |= {"tokens": end if step == 0 else 1, "token": tiny.text_of(ids[end - 1])}
            rows.append(about | apart(**compared) | bytes_of(tiny, end, longest + STEPS))
    return rows


CACHE = "cache" if hasattr(transformers.modeling_outputs.CausalLMOutputWithPast, "cache") else "past_key_values"


def cached(tiny, model, ids, sizes):
    held, out, start = new_cache(model.spec, 1, sum(sizes), torch.bfloat16), [], 0
    with torch.inference_mode():
        for size in sizes:
            out += forward(model, torch.tensor([ids[start : start + size]]), held)[0].tolist()
            start += size
    return out


def cached_by_reference(model, ids, sizes):
    kept, out, start = {}, [], 0
    with torch.inference_mode():
        for size in sizes:
            said = model(torch.tensor([ids[start : start + size]]), use_cache=True, **kept)
            kept = {CACHE: getattr(said, CACHE)}
            out += said.logits[0].tolist()
            start += size
    return out


def full_of_reference(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([ids]), use_cache=False).logits[0].tolist()


def apart(ours, ours_full, reference, reference_full, truth):
    """Differences of logits (tokens, vocabulary), each over all tokens and the whole vocabulary."""

    def differences(a, b):
        return [abs(x - y) for one, other in zip(a, b, strict=True) for x, y in zip(one, other, strict=True)]

    def same_top(a, b):
        return all(in_order(one)[0] == in_order(other)[0] for one, other in zip(a, b, strict=True))

    return {
        "max_abs_logit_diff": max(differences(ours, ours_full)),
        "mean_abs_logit_diff": mean(differences(ours, ours_full)),
        "top1_agrees": same_top(ours, ours_full),
        "reference_max_abs_logit_diff": max(differences(reference, reference_full)),
        "reference_mean_abs_logit_diff": mean(differences(reference, reference_full)),
        "reference_top1_agrees": same_top(reference, reference_full),
        "max_abs_error_ours": max(differences(ours, truth)),
        "max_abs_error_ours_full": max(differences(ours_full, truth)),
        "max_abs_error_reference": max(differences(reference, truth)),
        "max_abs_error_reference_full": max(differences(reference_full, truth)),
    }


def bytes_of(tiny, tokens, room):
    """Two bytes for each key, value and window, four for each state."""
    c = tiny.config
    kv_heads, size = 4 if tiny.name == "gpt2" else 2, 16 if tiny.name == "qwen3" else 8
    per_token = 2 * 2 * kv_heads * size * tiny.kinds.count("attention")
    window = state = 0
    if tiny.name == "granite":
        inner, n = c["mamba_n_heads"] * c["mamba_d_head"], c["mamba_d_state"]
        window = 3 * 2 * (c["mamba_d_conv"] - 1) * (inner + 2 * c["mamba_n_groups"] * n)
        state = 3 * 4 * inner * n
    return {
        "cache_tokens": tokens,
        "kv_bytes": per_token * tokens,
        "conv_bytes": window,
        "state_bytes": state,
        "formula_bytes": per_token * tokens + window + state,
        "reserved_bytes": per_token * room + window + state,
    }
