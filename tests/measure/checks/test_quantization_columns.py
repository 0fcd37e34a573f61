"""The tables of quantization, weight by weight, byte by byte and position by position."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import torch
from column_checks import recomputes
from definitions import answer_columns, deviation, in_order, kl, mean, quantile, softmax
from plain_quantizer import DEFAULTS, matrices_of, part_of, payload, quantized, with_weights
from tokentrail.forward.frame import forward, last
from tokentrail.quantize.packed import read_packed, write_packed
from tokentrail.quantize.payload import matrix_payload
from tokentrail.quantize.scheme import Scheme
from tokentrail.stages.quantization import quantization, quantization_error, quantization_quality, quantization_timing
from tokentrail.tables import schema_of
from tokentrail.weights.load import load_model

SCHEMES = {
    "q4": {"bits": 4, "group_size": 16},
    "q3-middles": {"bits": 3, "group_size": 24, "symmetric": False, "scales": "bfloat16", "weights": ["compute"]},
    "q4-columns": {"bits": 4, "group_size": 24, "grouping": "output", "divisor": "half_range", "weights": ["ffn.down"]},
    "q4-flat": {"bits": 4, "group_size": 40, "grouping": "flattened", "scale": "search", "weights": ["ffn.up", "head"]},
    "q8-kept": {"bits": 8, "group_size": "channel", "outliers": 0.01, "scales": "float32"},
    "q5-in": {"bits": 5, "group_size": 32, "weights": ["tokens.input"]},
    "q5-out": {"bits": 5, "group_size": 32, "weights": ["tokens.output"]},
    "q2-each": {"bits": 2, "group_size": 16, "weights": ["ffn.up", "ffn.down"], "one_at_a_time": True},
    "q4-packed": {"bits": 4, "group_size": 32, "scales": "bfloat16", "packed": True},
    "q3-packed": {"bits": 3, "group_size": 32, "scales": "bfloat16", "packed": True},
}
ASKED = ("weights", "one_at_a_time", "packed")  # what is asked of a scheme and is no part of it
DETAILS = {
    "q4": "4 bits, groups of 16 along the input, symmetric, largest weight / 7, float16 scales",
    "q3-middles": "3 bits, groups of 24 along the input, asymmetric, range / 7, bfloat16 scales",
    "q4-columns": "4 bits, groups of 24 along the output, symmetric, largest weight / 8, float16 scales",
    "q4-flat": "4 bits, groups of 40 as stored, symmetric, searched scale, float16 scales",
    "q8-kept": "8 bits, one scale a line along the input, symmetric, largest weight / 127, float32 scales, "
    "largest 1.00% kept apart",
    "q5-in": "5 bits, groups of 32 along the input, symmetric, largest weight / 15, float16 scales",
    "q5-out": "5 bits, groups of 32 along the input, symmetric, largest weight / 15, float16 scales",
    "q2-each": "2 bits, groups of 16 along the input, symmetric, largest weight / 1, float16 scales",
    "q4-packed": "4 bits, groups of 32 along the input, symmetric, largest weight / 7, bfloat16 scales",
    "q3-packed": "3 bits, groups of 32 along the input, symmetric, largest weight / 3, bfloat16 scales",
}
METHODS = {"q3-middles": "asymmetric", "q4-flat": "searched scales", "q8-kept": "outliers apart"}
READABLE = {  # what each model finds likelier than a uniform guess does
    "gpt2": "In Tokyo Tokyo" + " Tom" * 30,
    "qwen3": "In of of is" + " Bob" * 30,
    "granite": "In the Alice of Tom is Tom Bob a of" + " Tom Bob is" * 10,
}
UNREADABLE = "In the morning, Alice gave Bob a book. The capital of Japan is Tokyo. Carol and Mirabel met Tom."
WINDOW = 20
BOOTSTRAP = {"samples": 30, "level": 0.8, "seed": 2}
PROMPT = {"text": "The capital of France is", "target": " Paris"}


@pytest.fixture(scope="module")
def settings(tiny, tmp_path_factory):
    folder, passages = tmp_path_factory.mktemp("passages"), {"short": READABLE[tiny.name], "foreign": UNREADABLE}
    for name, text in passages.items():
        (folder / name).write_text(text)
    return tiny.settings(
        prompts={"france": PROMPT},
        schemes={name: DEFAULTS | scheme for name, scheme in SCHEMES.items()},
        passages={name: str(folder / name) for name in passages},
        window=WINDOW,
        bootstrap=BOOTSTRAP,
    )


@pytest.fixture(scope="module")
def quality(tiny, settings):
    return quantization_quality.measure(tiny.fresh(), settings)


def tied(tiny):
    return tiny.name == "gpt2"


def cases(tiny):
    """Each scheme with the parts that it is put to and the matrices that it changes, as far as the model has them."""
    names = list(matrices_of(tiny.fresh().model, tiny.kinds))
    tied = tiny.name == "gpt2"
    for name, scheme in SCHEMES.items():
        asked = scheme.get("weights", ["all"])
        for selection in [[part] for part in asked] if scheme.get("one_at_a_time") else [asked]:
            found = set()
            for part in selection:
                if part in ("tokens.input", "tokens.output"):
                    found |= {"tokens" if part == "tokens.input" else "head.weight"} if tied else set()
                elif not (part == "head" and tied):
                    found |= {
                        tensor
                        for tensor in names
                        if part in ("all", part_of(tensor, tiny.kinds))
                        or (part == "compute" and tensor.startswith("layers."))
                    }
            if found:
                yield name, DEFAULTS | scheme, ", ".join(selection), [n for n in names if n in found]


@pytest.fixture(scope="module")
def plain(tiny):
    """Each scheme's matrices, quantized one weight at a time: by scheme and tensor."""
    model, made = tiny.fresh().model, {}
    matrices = matrices_of(model, tiny.kinds)
    for name, scheme, _, tensors in cases(tiny):
        for tensor in tensors:
            if tiny.name == "gpt2" and tensor == "head.weight" and (name, "tokens") in made:
                made[name, tensor] = made[name, "tokens"]
            else:
                turned = tiny.name == "gpt2" and tensor.startswith("layers.")
                made[name, tensor] = quantized(matrices[tensor], scheme, turned)
    return made


# quantization_error


@recomputes(
    "quantization_error",
    *("scheme", "tensor", "shape", "bits", "group_size", "mean_abs_error", "std", "relative_error", "max_abs"),
    *("max_sigma", "beyond_4_sigma", "groups", "groups_with_outlier", "first_scale", "first_weights", "first_codes"),
    *("status", "reason"),
    key=("scheme", "tensor"),
    rel=1e-4,
    close=1e-7,
)
def test_quantization_error(tiny, settings, plain):
    chosen = {name: scheme for name, scheme in settings["schemes"].items() if name != "q2-each"}
    matrices = matrices_of(tiny.fresh().model, tiny.kinds)
    rows = []
    for name, scheme, _, tensors in cases(tiny):
        if name not in chosen:
            continue
        if tiny.name == "gpt2":  # the head is the token table, whichever its use
            tensors = dict.fromkeys("tokens" if tensor == "head.weight" else tensor for tensor in tensors)
        for tensor in tensors:
            one = plain.get((name, tensor)) or plain[name, "head.weight"]
            weights = matrices[tensor].tolist()
            flat = [w for row in weights for w in row]
            std, lost = deviation(flat), [abs(r - w) for r, w in zip(one.read.flatten().tolist(), flat, strict=True)]
            far = {(o, i) for o, row in enumerate(weights) for i, w in enumerate(row) if abs(w) > 4 * std}
            turned = tiny.name == "gpt2" and tensor.startswith("layers.")
            first = [(k, 0) if turned else (0, k) for k in range(6)]
            rows.append(
                {
                    "scheme": name,
                    "tensor": tensor,
                    "shape": f"{len(weights)}x{len(weights[0])}",
                    "bits": scheme["bits"],
                    "group_size": None if scheme["group_size"] == "channel" else scheme["group_size"],
                    "mean_abs_error": mean(lost),
                    "std": std,
                    "relative_error": mean(lost) / std,
                    "max_abs": max(abs(w) for w in flat),
                    "max_sigma": max(abs(w) for w in flat) / std,
                    "beyond_4_sigma": len(far) / len(flat),
                    "groups": len(one.groups),
                    "groups_with_outlier": sum(any(at in far for at in group) for group in one.groups),
                    "first_scale": one.scales[0],
                    "first_weights": ", ".join(f"{weights[o][i]:.4f}" for o, i in first),
                    "first_codes": ", ".join(str(one.codes[at]) for at in first),
                    "status": "ok",
                    "reason": "",
                }
            )
    return quantization_error.measure(tiny.checkpoint, tiny.settings(schemes=chosen)), rows


# quantization_quality


def windows_of(tiny, text):
    """The passage in pieces that fit a window, each after a BOS token of its own."""
    ids, room = tiny.bare(text), WINDOW - len(tiny.bos)
    cut = [tiny.bos + ids[start : start + room] for start in range(0, len(ids), room)]
    return [window for window in cut if len(window) > 1]


@torch.inference_mode()
def said(model, windows):
    """Logits of every position whose next token is the passage's, with that token."""
    longest = max(map(len, windows))
    padded = torch.tensor([window + [0] * (longest - len(window)) for window in windows])
    logits = forward(model, padded, lengths=torch.tensor([len(window) for window in windows]))
    for row, window in zip(logits.float().tolist(), windows, strict=True):
        yield from zip(row, window[1:], strict=False)


@torch.inference_mode()
def answered(model, ids):
    prompt = torch.tensor([ids])
    return forward(model, prompt, read=last(prompt))[0, 0].float().tolist()


def rounding(matrices):
    """The mean error of all weights, and the share in matrices that moved by a fortieth of a step or less.

    Of each matrix: itself, read back, and its mean step.
    """
    lost, still, weights = 0.0, 0, 0
    for matrix, read_back, step in matrices:
        before, after = matrix.flatten().tolist(), read_back.flatten().tolist()
        error = mean([abs(a - b) for a, b in zip(after, before, strict=True)])
        middle = mean(before)
        spread = mean([abs(b - middle) for b in before])
        weights += len(before)
        lost += len(before) * error / deviation(before)
        still += len(before) if error <= min(step, spread) / 40 else 0
    return {"weight_error": lost / weights, "on_codes": still / weights}


def interval(units):
    draws = np.random.default_rng(BOOTSTRAP["seed"]).integers(0, len(units), (BOOTSTRAP["samples"], len(units)))
    means = [mean([units[i] for i in draw]) for draw in draws]
    return mean(units), quantile(means, 0.1), quantile(means, 0.9)


@recomputes(
    "quantization_quality",
    *("scheme", "detail", "method", "bits", "group_size", "families", "execution", "payload_bytes", "stored_bytes"),
    *("compression", "prompt", "kl", "top1_token", "top1_probability", "target_probability", "target_rank", "passage"),
    *("positions", "bos_policy", "perplexity", "perplexity_low", "perplexity_high", "mean_kl", "mean_kl_low"),
    *("mean_kl_high", "top1_agreement", "top1_agreement_low", "top1_agreement_high", "level", "parity_float32"),
    *("parity_bfloat16", "stored_dtypes", "weight_error", "on_codes", "status", "reason"),
    key=("scheme", "families", "execution", "passage"),
    rel=1e-3,
    close=2e-6,
)
def test_quantization_quality(tiny, quality, plain, tmp_path):
    model, windows, ids = tiny.fresh().model, windows_of(tiny, READABLE[tiny.name]), tiny.ids(PROMPT["text"])
    target = tiny.after(PROMPT["text"], PROMPT["target"])[0]
    clean, expected = softmax(answered(model, ids)), [(softmax(x), token) for x, token in said(model, windows)]
    parameters = sum(tensor.numel() for tensor in tiny.weights().values())
    rows = []
    always = {"prompt": "france", "bos_policy": "added" if tiny.bos else "tokenizer does not add it", "level": 0.8}
    always |= {"stored_bytes": None, "parity_float32": None, "parity_bfloat16": None, "stored_dtypes": "F32"}
    of_answers = ("kl", "top1_token", "top1_probability", "target_probability", "target_rank", "positions")
    ends = ("", "_low", "_high")
    of_answers += tuple(f"{name}{end}" for name in ("perplexity", "mean_kl", "top1_agreement") for end in ends)

    def skipped(size, reason, **about):
        empty = dict.fromkeys(of_answers) | {"payload_bytes": size, "compression": 4 * parameters / size}
        rows.append(always | empty | {"passage": "", "status": "skipped", "reason": reason} | about)

    def row(own, size, **about):
        logits = answered(own, ids)
        nll, divergence, agrees = [], [], []
        for (p, token), (x, _) in zip(expected, said(own, windows), strict=True):
            q = softmax(x)
            nll.append(-math.log(q[token]))
            divergence.append(kl(p, q))
            agrees.append(float(in_order(p)[0] == in_order(q)[0]))
        row = {"payload_bytes": size, "compression": 4 * parameters / size, "passage": "short"}
        row |= {"kl": kl(clean, softmax(logits)), "positions": len(nll)}
        row |= answer_columns(tiny, logits, target)
        row |= {f"perplexity{end}": math.exp(x) for end, x in zip(ends, interval(nll), strict=True)}
        row |= {f"mean_kl{end}": x for end, x in zip(ends, interval(divergence), strict=True)}
        row |= {f"top1_agreement{end}": x for end, x in zip(ends, interval(agrees), strict=True)}
        rows.append(always | row | {"status": "ok", "reason": ""} | about)

    same = {"detail": "", "method": "", "bits": None, "group_size": None, "families": "", "execution": "unquantized"}
    unmoved = same | {"weight_error": 0.0, "on_codes": None}
    row(model, 4 * parameters, scheme="float32", **unmoved)
    lost = mean([-math.log(softmax(x)[token]) for x, token in said(model, windows_of(tiny, UNREADABLE))])
    reason = (
        f"tiny loses {lost:.2f} nats a token on foreign, more than the 5.82 of a uniform guess over its 338 tokens: "
    )
    skipped(4 * parameters, reason + "it cannot read this text", scheme="float32", passage="foreign", **unmoved)
    matrices = matrices_of(model, tiny.kinds)
    halves = [(m, m.bfloat16().float(), 0.0) for name, m in matrices.items() if name != "head.weight" or not tied(tiny)]
    half = load_model(tiny.checkpoint, torch.bfloat16)
    row(half, 2 * parameters, scheme="bfloat16", **same | rounding(halves))
    for name, scheme, families, tensors in cases(tiny):
        changed = {tensor: torch.from_numpy(plain[name, tensor].read) for tensor in tensors}
        one_use = tiny.name == "gpt2" and ("tokens" in tensors) != ("head.weight" in tensors)
        counted = [t for t in tensors if not (tiny.name == "gpt2" and t == "head.weight" and "tokens" in tensors)]
        size = 4 * parameters + (4 * matrices["tokens"].numel() if one_use else 0)
        size += sum(payload(matrices[t].shape, scheme) - 4 * matrices[t].numel() for t in counted)
        about = {"scheme": name, "detail": DETAILS[name], "method": METHODS.get(name, "plain"), "families": families}
        about |= {"bits": scheme["bits"]}
        about |= {"group_size": None if scheme["group_size"] == "channel" else scheme["group_size"]}
        about |= rounding((matrices[t], changed[t], mean(plain[name, t].scales)) for t in counted)
        simulated = with_weights(model, changed)
        row(simulated, size, **about, execution="simulated")
        if name == "q3-packed":
            refused = f"{min(tensors).removesuffix('.weight')}: there is no packed kernel for 3 bits"
            skipped(size, refused, **about, execution="packed")
        if name != "q4-packed":
            continue
        path = tmp_path / "packed.safetensors"
        kept = {key: value for key, value in scheme.items() if key not in ASKED}
        write_packed(tiny.checkpoint, Scheme(**kept), frozenset(tensors), path)
        packed, exact = read_packed(path), read_packed(path, torch.float32)
        with torch.inference_mode():
            whole, first = torch.tensor([ids]), torch.tensor([ids[:1]])
            logits = forward(simulated, whole)
            apart = {
                "parity_float32": (forward(exact, first) - logits[:, :1]).abs().max().item(),
                "parity_bfloat16": (forward(packed, whole) - logits).abs().max().item(),
            }
        row(packed, size, **about, **apart, execution="packed", stored_bytes=path.stat().st_size)
    return quality, rows


@pytest.mark.parametrize("name", SCHEMES)
def test_rows_end_in_whole_bytes(name):
    """No row of a tiny model has codes that leave a byte half full."""
    scheme = {key: value for key, value in (DEFAULTS | SCHEMES[name]).items() if key not in ASKED}
    assert matrix_payload((5, 51), Scheme(**scheme)) == payload((5, 51), scheme)


# quantization_timing and quantization

TIMES = {"context": 5, "steps": 2, "prefill": 7, "rounds": 3, "seed": 1}


@recomputes(
    "quantization_timing",
    *("scheme", "families", "context", "decode_ms", "decode_low_ms", "decode_high_ms", "prefill_tokens", "prefill_ms"),
    *("prefill_low_ms", "prefill_high_ms", "level", "rounds", "threads"),
    key=("scheme", "families"),
)
def test_quantization_timing(tiny, settings, monkeypatch):
    taken = {}

    def shuffled(cases, rounds, seed):
        assert (rounds, seed) == (3, 1)
        for case, prepare in cases.items():
            (steps,) = {len(out) if isinstance(out, list) else 1 for out in [prepare()()]}
            assert steps == (2 if case[0] == "decode" else 1)
        taken.update({case: [k + 1.0, k + 5.0, k + 2.5] for k, case in enumerate(cases)})
        return taken

    monkeypatch.setattr(quantization_timing, "shuffled", shuffled)
    frame = quantization_timing.measure(tiny.checkpoint, tiny.settings(schemes=settings["schemes"], **TIMES))
    assert (frame["resident_bytes"] >= 0).all()
    rows = []
    for scheme, families in (("float32", ""), ("bfloat16", ""), ("q4-packed", "all")):
        decode, prefill = taken["decode", scheme, families], taken["prefill", scheme, families]
        row = {"scheme": scheme, "families": families, "context": 5, "prefill_tokens": 7, "rounds": 3, "threads": 1}
        for end, share in (("", 0.5), ("_low", 0.0), ("_high", 1.0)):  # of three rounds: the fastest and the slowest
            row[f"decode{end}_ms"] = quantile(decode, share) * 1000 / 2
            row[f"prefill{end}_ms"] = quantile(prefill, share) * 1000
        row["level"] = 0.75  # all three are on one side of the median once in four times
        rows.append(row)
    return frame, rows


QUALITY = [column for column in schema_of("quantization_quality").column_names() if column != "model"]


TIMED = ("resident_bytes", *(f"{kind}{end}_ms" for kind in ("decode", "prefill") for end in ("", "_low", "_high")))


@recomputes("quantization", *QUALITY, *TIMED, key=("scheme", "families", "execution", "passage"))
def test_quantization(quality):
    times = {
        ("float32", ""): (900, 4.0, 3.5, 4.5, 40.0, 39.0, 42.0),
        ("bfloat16", ""): (500, 3.0, 2.5, 3.5, 30.0, 29.0, 32.0),
        ("q4-packed", "all"): (300, 2.0, 1.5, 2.5, 20.0, 19.0, 22.0),
    }
    timing = pl.DataFrame(
        [
            {"scheme": scheme, "families": families} | dict(zip(TIMED, found, strict=True))
            for (scheme, families), found in times.items()
        ]
    )
    rows = []
    for row in quality.select(QUALITY).to_dicts():
        ran = row["execution"] != "simulated" and row["status"] == "ok"
        taken = times[row["scheme"], row["families"]] if ran else (None,) * len(TIMED)
        rows.append(row | dict(zip(TIMED, taken, strict=True)))
    return quantization.measure(quality, timing, {"model": "tiny"}), rows
