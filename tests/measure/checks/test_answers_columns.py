"""`next_token`, `distribution` and `lens`, from the logits of plain passes."""

from __future__ import annotations

import math
from itertools import product

import pytest
from column_checks import recomputes
from definitions import See, answer_columns, entropy_bits, in_order, kl, last_logits, mean, rank_of, rms, run, softmax
from tokentrail.stages.distribution import measure as distribution
from tokentrail.stages.lens import measure as lens
from tokentrail.stages.next_token import measure as next_token


@pytest.mark.parametrize("top_k", [3, 1000])
@recomputes(
    "next_token",
    *("prompt", "rank", "token_id", "token", "logit", "probability", "nll", "is_target"),
    key=("prompt", "token_id"),
)
def test_next_token(tiny, top_k):
    rows = []
    for prompt, ids, target in tiny.prompts():
        logits = last_logits(tiny.model, ids)
        p = softmax(logits)
        rows += [
            {
                "prompt": prompt,
                "rank": rank_of(logits, token),
                "token_id": token,
                "token": tiny.text_of(token),
                "logit": logits[token],
                "probability": p[token],
                "nll": -math.log(p[token]),
                "is_target": token == target,
            }
            for token in range(len(logits))
            if token == target or rank_of(logits, token) < top_k
        ]
    return next_token.measure(tiny.loaded, tiny.settings(top_k=top_k)), rows


DECODING = {"temperatures": [0.5, 3.0], "top_k": [1, 7], "top_p": [0.2, 0.9]}
CONTINUE = 3
EXPERIMENT = {
    "template": "{who} gave {what} to",
    "target": " Bob",
    "factors": {"who": {"one": "Alice", "two": "Alice and Carol"}, "what": {"book": "a book", "key": "the key"}},
}


@recomputes(
    "distribution",
    *("prompt", "experiment", "levels", "tokens", "step", "decoding", "top1_token", "top1_probability"),
    *("target_probability", "target_rank", "tokens_left", "entropy_bits", "effective_choices", "top5_mass"),
    *("tokens_for_90_percent", "vocabulary"),
    key=("prompt", "step", "decoding"),
)
def test_distribution(tiny):
    rows = []
    for prompt, ids, target in tiny.prompts():
        same = {"prompt": prompt, "experiment": "", "levels": ""}
        for step in range(CONTINUE + 1):
            logits = last_logits(tiny.model, ids)
            at = same | {"tokens": len(ids), "step": step}
            rows.append(at | {"decoding": "none"} | described(tiny, logits, softmax(logits), target))
            if step == 0:
                rows += [at | {"decoding": rule} | described(tiny, logits, p, target) for rule, p in decoded(logits)]
            ids = [*ids, in_order(logits)[0]]
    factors = EXPERIMENT["factors"]
    for who, what in product(factors["who"], factors["what"]):
        levels = f"who: {who}, what: {what}"
        text = f"{factors['who'][who]} gave {factors['what'][what]} to"
        ids, logits = tiny.ids(text), last_logits(tiny.model, tiny.ids(text))
        same = {"prompt": f"gifts ({levels})", "experiment": "gifts", "levels": levels}
        same |= {"tokens": len(ids), "step": 0, "decoding": "none"}
        rows.append(same | described(tiny, logits, softmax(logits), tiny.after(text, " Bob")[0]))
    settings = tiny.settings(decoding=DECODING, continue_for=CONTINUE, experiments={"gifts": EXPERIMENT})
    return distribution.measure(tiny.loaded, settings), rows


def test_a_continuation_ends_with_the_positions(tinies):
    tiny = tinies("gpt2")
    text = "Bob" + " Bob" * (tiny.config["n_positions"] - 5)
    settings = tiny.settings(decoding={key: [] for key in DECODING}, continue_for=5, experiments={})
    settings["prompts"] = {"long": {"text": text, "target": " Bob"}}
    frame = distribution.measure(tiny.loaded, settings)
    assert frame["tokens"].to_list() == list(range(len(tiny.ids(text)), tiny.config["n_positions"] + 1))
    assert 1 < frame.height < 6


def decoded(logits):
    """Each rule's name and the probabilities that it leaves."""
    p, order = softmax(logits), in_order(logits)
    for t in DECODING["temperatures"]:
        yield f"temperature {t:g}", softmax([x / t for x in logits])
    for k in DECODING["top_k"]:
        yield f"top-k {k}", kept(p, order[:k])
    for share in DECODING["top_p"]:
        nucleus = []
        while sum(p[i] for i in nucleus) < share:
            nucleus.append(order[len(nucleus)])
        yield f"top-p {share:g}", kept(p, nucleus)


def kept(p, tokens):
    total = sum(p[i] for i in tokens)
    return [x / total if i in tokens else 0.0 for i, x in enumerate(p)]


def described(tiny, logits, p, target):
    order = in_order(p)
    fewest = next(n for n in range(1, len(p) + 1) if sum(p[i] for i in order[:n]) >= 0.9)
    return {
        "top1_token": tiny.text_of(order[0]),
        "top1_probability": p[order[0]],
        "target_probability": p[target],
        "target_rank": rank_of(logits, target),
        "tokens_left": sum(x > 0 for x in p),
        "entropy_bits": entropy_bits(p),
        "effective_choices": 2 ** entropy_bits(p),
        "top5_mass": sum(p[i] for i in order[:5]),
        "tokens_for_90_percent": fewest,
        "vocabulary": len(p),
    }


@recomputes(
    "lens",
    *("prompt", "variant", "layer", "site", "target_probability", "target_rank", "top1_token", "top1_probability"),
    *("entropy_bits", "kl_to_final"),
    key=("prompt", "variant", "layer", "site"),
)
def test_lens(tiny):
    variants = {"as_trained": {}}
    if len(set(tiny.kinds)) > 1:
        attention = [i for i, kind in enumerate(tiny.kinds) if kind == "attention"]
        variants["attention_off"] = {("z", i): lambda z: z * 0 for i in attention}
    rows = []
    for prompt, ids, target in tiny.prompts():
        for variant, change in variants.items():
            tap = See(["embed", "resid_mid", "resid_post"], change)
            final = softmax(run(tiny.model, ids, tap)[-1].tolist())
            for (site, layer), stream in tap.seen.items():
                logits = read_out(tiny, stream[0, -1].tolist())
                p = softmax(logits)
                rows.append(
                    {"prompt": prompt, "variant": variant, "layer": 0 if site == "embed" else layer, "site": site}
                    | answer_columns(tiny, logits, target)
                    | {"entropy_bits": entropy_bits(p), "kl_to_final": kl(final, p)}
                )
    return lens.measure(tiny.loaded, tiny.settings()), rows


def read_out(tiny, x):
    """The last norm and the head, written out for one vector."""
    weight, eps = tiny.model.final_norm.weight.tolist(), tiny.config.get("rms_norm_eps")
    if tiny.name == "gpt2":
        bias, middle = tiny.model.final_norm.bias.tolist(), mean(x)
        spread = math.sqrt(mean([(v - middle) ** 2 for v in x]) + tiny.config["layer_norm_epsilon"])
        normed = [(v - middle) / spread * w + b for v, w, b in zip(x, weight, bias, strict=True)]
    else:
        size = math.sqrt(rms(x) ** 2 + eps)
        normed = [v / size * w for v, w in zip(x, weight, strict=True)]
    divisor = tiny.config.get("logits_scaling", 1.0)
    return [sum(a * b for a, b in zip(row, normed, strict=True)) / divisor for row in tiny.model.head.weight.tolist()]
