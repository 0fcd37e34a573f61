"""The quantization tables of models that do not exist."""

from __future__ import annotations

from typing import Any

from tokentrail.stages.quantization.quantization import TIMES

HOSTILE_TOKEN = "<img src=x onerror=alert(1)>"
FLOAT32_BYTES = 400 << 20
PASSAGE, POSITIONS = "tide-mill", 300
HARD = "<b>island</b>"
UNREAD = f"the model loses 10.51 nats a token on {HARD}, more than the 7.38 of a uniform guess"
MEASURED = (
    *("kl", "top1_token", "top1_probability", "target_probability", "target_rank", "positions"),
    *(f"{name}{end}" for name in ("perplexity", "mean_kl", "top1_agreement") for end in ("", "_low", "_high")),
    *("stored_bytes", "parity_float32", "parity_bfloat16"),
)


def skipped(reason: str) -> dict[str, Any]:
    """What a row has that was asked for and not measured."""
    return dict.fromkeys(MEASURED) | {"status": "skipped", "reason": reason}


def of_quantization(model: str, prompt: str) -> dict[str, list[dict[str, Any]]]:
    """Bits, group sizes, parts alone, a searched scale, and what ran packed; `delta` was given no passage."""
    mamba = model == "beta"
    rows = [
        row(prompt, "float32", None, None, "", "unquantized", kl=0.0),
        row(prompt, "bfloat16", None, None, "", "unquantized", kl=2e-5),
        *(row(prompt, f"q{bits}", bits, 64, "all", kl=4.0 * 4.0**-bits) for bits in (8, 6, 4, 3, 2)),
        *(row(prompt, f"q4-{size}", 4, size, "all", kl=1e-4 * size) for size in (16, 32, 128)),
        *(
            row(prompt, "q4-each", 4, 64, part, kl=0.004 * (place + 1))
            for place, part in enumerate(
                ["tokens", "attention.qkv", "attention.out", *(["mamba2.in_proj"] if mamba else []), "ffn.up"]
            )
        ),
        row(prompt, "q4-compute", 4, 64, "compute", kl=0.02),
        row(prompt, "q4-table-in", 4, 64, "tokens.input", kl=0.001),
        row(prompt, "q4-table-out", 4, 64, "tokens.output", kl=0.003),
        row(prompt, "q4-search", 4, 64, "all", kl=0.012, method="searched scales"),
        row(prompt, "q4-packed", 4, 32, "all", kl=0.011, detail="4 bits, bfloat16 scales"),
        row(prompt, "q4-packed", 4, 32, "all", "packed", kl=0.0111, detail="4 bits, bfloat16 scales"),
        row(prompt, "q3-packed", 3, 32, "all", kl=0.06),
        row(prompt, "q3-packed", 3, 32, "all", "packed")
        | skipped("tokens: there is no packed kernel for 3 bits")
        | {"passage": ""},
        row(prompt, "q8-packed", 8, None, "all", kl=2e-4),
        row(prompt, "q8-packed", 8, None, "all", "packed", kl=2.1e-4),
    ]
    if model == "delta":
        quantities = ("perplexity", "mean_kl", "top1_agreement")
        nothing = {f"{name}{end}": None for name in quantities for end in ("", "_low", "_high")}
        rows = [each | nothing | {"passage": "", "positions": None} for each in rows]
    rows.insert(1, rows[0] | skipped(UNREAD) | {"passage": HARD})
    ran = [each for each in rows if each["execution"] != "simulated" and each["status"] == "ok"]
    times = {"float32": 40.0, "bfloat16": 24.0, "q4-packed": 9.0, "q8-packed": 13.0}
    timing = [
        {"scheme": each["scheme"], "families": each["families"], "resident_bytes": each["payload_bytes"] + (4 << 20)}
        | {"context": 64, "prefill_tokens": 64, "rounds": 7, "threads": 2}
        | {f"decode{end}_ms": times[each["scheme"]] for end in ("", "_low", "_high")}
        | {f"prefill{end}_ms": 300.0 for end in ("", "_low", "_high")}
        | {"level": 0.984375}
        for each in ran
    ]
    timed = {(each["scheme"], each["families"]): each for each in timing}
    return {
        "quantization_quality": rows,
        "quantization_timing": timing,
        "quantization": [
            each | {name: timed[each["scheme"], each["families"]][name] if each in ran else None for name in TIMES}
            for each in rows
        ],
        "quantization_error": [
            {"scheme": "q4", "tensor": f"layers.{layer}.ffn.{name}.weight", "shape": "64x96", "bits": 4}
            | {"group_size": 64, "mean_abs_error": 0.01, "std": 0.1, "relative_error": 0.1 + 0.01 * layer}
            | {"max_abs": 1.0 + layer, "max_sigma": 10.0 + 10 * layer, "beyond_4_sigma": 0.001, "groups": 100}
            | {"groups_with_outlier": 6 + layer, "first_scale": 0.02, "first_weights": "0.1", "first_codes": "5"}
            | {"status": "ok", "reason": ""}
            for layer in range(3)
            for name in ("up", "down")
        ],
    }


def row(
    prompt: str,
    scheme: str,
    bits: int | None,
    size: int | None,
    families: str,
    execution: str = "simulated",
    kl: float = 0.0,
    method: str = "plain",
    detail: str = "",
) -> dict[str, Any]:
    share = {"": 1.0 if scheme == "float32" else 0.5, "all": (bits or 0) / 32 + 0.02, "compute": 0.4}
    payload = round(FLOAT32_BYTES * share.get(families, 0.9))
    packed = execution == "packed"
    worse = 1e8 if bits == 2 else 1.0  # as two bits are, and their numbers as long
    return {
        "scheme": scheme,
        "detail": "" if bits is None else detail or f"{bits} bits",
        "method": "" if bits is None else method,
        "bits": bits,
        "group_size": size,
        "families": families,
        "execution": execution,
        "payload_bytes": payload,
        "stored_bytes": payload + 20_000 if packed else None,
        "compression": FLOAT32_BYTES / payload,
        "prompt": prompt,
        "kl": kl * 1.4,
        "top1_token": HOSTILE_TOKEN if kl > 0.05 else " Paris",
        "top1_probability": 0.5,
        "target_probability": 0.4,
        "target_rank": int(kl > 0.05),
        "passage": PASSAGE,
        "positions": POSITIONS,
        "bos_policy": "tokenizer does not add it",
        "perplexity": (20.0 + 10 * kl) * worse,
        "perplexity_low": 18.0 * worse,
        "perplexity_high": 40.0 * worse,
        "mean_kl": kl,
        "mean_kl_low": kl * 0.8,
        "mean_kl_high": kl * 1.2,
        "top1_agreement": 1.0 if kl == 0 else 0.9,
        "top1_agreement_low": 1.0 if kl == 0 else 0.85,
        "top1_agreement_high": 1.0 if kl == 0 else 0.95,
        "level": 0.95,
        "parity_float32": 1e-5 if packed else None,
        "parity_bfloat16": 0.05 if packed else None,
        "stored_dtypes": "F32",
        "weight_error": 0.3 * 2.0 ** -(bits or 32),
        "on_codes": None if scheme == "float32" else 0.0,
        "status": "ok",
        "reason": "",
    }
