"""What columns are defined as, worked out slowly and plainly: from logits, from tensors of the pass, from ids.

Nothing here calls `tokentrail.measure` or `tokentrail.quantize`. The model's pass may be called, with taps: parity
covers it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import count

import tokenizers
import torch
from tokentrail.forward.frame import Model, forward
from tokentrail.forward.taps import Tap
from torch import Tensor

# a pass, seen and changed


class See(Tap):
    """Keeps what comes by at some sites, as it is after `change`: by site and layer, a function of the tensor."""

    def __init__(
        self, sites: Iterable[str] = (), change: dict[tuple[str, int], Callable[[Tensor], Tensor]] | None = None
    ):
        self.sites, self.change = set(sites), change or {}
        self.costly = frozenset({"pattern"} & (self.sites | {site for site, _ in self.change}))
        self.seen: dict[tuple[str, int], Tensor] = {}
        self.before: dict[tuple[str, int], Tensor] = {}

    def __call__(self, site, layer, tensor):
        if site in self.sites:
            self.before[site, layer] = tensor.clone()
        if (site, layer) in self.change:
            tensor = self.change[site, layer](tensor.clone())
        if site in self.sites:
            self.seen[site, layer] = tensor.clone()
        return tensor


def seen(model: Model, ids: list[int], *sites: str) -> dict[tuple[str, int], Tensor]:
    """The tensors of one plain pass at some sites, without their row axis."""
    tap = See(sites)
    run(model, ids, tap)
    return {at: tensor[0] for at, tensor in tap.seen.items()}


@torch.inference_mode()
def run(model: Model, ids: list[int], tap: Tap | None = None) -> Tensor:
    """Logits of one plain pass without a cache: (tokens, vocabulary)."""
    return forward(model, torch.tensor([ids]), tap=tap or Tap())[0]


def last_logits(model: Model, ids: list[int], change: dict | None = None) -> list[float]:
    return run(model, ids, See(change=change))[-1].tolist()


# a row of logits


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    powers = [math.exp(x - top) for x in logits]
    total = sum(powers)
    return [x / total for x in powers]


def rank_of(values: list[float], token: int) -> int:
    """How many tokens come first, the lower id first among equals."""
    return sum(v > values[token] or (v == values[token] and i < token) for i, v in enumerate(values))


def in_order(values: list[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda i: (-values[i], i))


def entropy_bits(p: list[float]) -> float:
    return -sum(x * math.log2(x) for x in p if x > 0)


def kl(p: list[float], q: list[float]) -> float:
    """KL(p || q) in nats."""
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def answer_columns(tiny, logits: list[float], target: int) -> dict:
    """The four columns that most tables have of an answer."""
    p = softmax(logits)
    top1 = in_order(p)[0]
    return {
        "target_probability": p[target],
        "target_rank": rank_of(logits, target),
        "top1_token": tiny.text_of(top1),
        "top1_probability": p[top1],
    }


# a vector


def euclidean(x: list[float]) -> float:
    return math.sqrt(sum(v * v for v in x))


def mean(x: list[float]) -> float:
    return sum(x) / len(x)


def rms(x: list[float]) -> float:
    return math.sqrt(sum(v * v for v in x) / len(x))


def deviation(x: list[float]) -> float:
    """Population standard deviation."""
    middle = mean(x)
    return math.sqrt(sum((v - middle) ** 2 for v in x) / len(x))


def median(x: list[float]) -> float:
    return quantile(x, 0.5)


def quantile(x: list[float], share: float) -> float:
    """Between the two nearest values in proportion."""
    ordered = sorted(x)
    place = share * (len(x) - 1)
    low = math.floor(place)
    high = min(low + 1, len(x) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


# text


def gpt2_bytes() -> dict[str, int]:
    """The characters that stand for bytes in a byte-level vocabulary, as GPT-2's encoder.py makes them."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = (b for b in range(256) if b not in shown)
    return {chr(b): b for b in shown} | {chr(256 + n): b for n, b in zip(count(), hidden)}


BYTES = gpt2_bytes()


def raw_bytes(inner: tokenizers.Tokenizer, token_id: int) -> bytes:
    name = inner.id_to_token(token_id)
    return bytes(BYTES[c] for c in name) if all(c in BYTES for c in name) else name.encode()


def text_of(inner: tokenizers.Tokenizer, token_id: int) -> str:
    """A token's text, bytes that are no whole character as <0xNN>, an id without a token as <id N>."""
    if inner.id_to_token(token_id) is None:
        return f"<id {token_id}>"
    out, raw = "", raw_bytes(inner, token_id)
    while raw:
        size = next((n for n in range(1, 5) if is_text(raw[:n])), 0)
        out += raw[:size].decode() if size else f"<0x{raw[0]:02X}>"
        raw = raw[size or 1 :]
    return out


def is_text(raw: bytes) -> bool:
    try:
        return len(raw.decode()) == 1
    except UnicodeDecodeError:
        return False


def ranges(layers: list[int]) -> str:
    """`[0, 1, 2, 5]` as `0-2, 5`."""
    out = []
    for layer in layers:
        if layer - 1 not in layers:
            end = layer
            while end + 1 in layers:
                end += 1
            out.append(str(layer) if end == layer else f"{layer}-{end}")
    return ", ".join(out)
