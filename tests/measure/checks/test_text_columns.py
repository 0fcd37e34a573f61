"""`tokens` and `merges`, from the tokenizer's own ids and its list of merges."""

from __future__ import annotations

import json
from itertools import pairwise

from column_checks import recomputes
from definitions import BYTES, raw_bytes
from tiny_models import PROMPTS
from tokentrail.stages.merges import measure as merges
from tokentrail.stages.tokens import measure as tokens

TEXTS = PROMPTS | {
    "accents": {"text": "Zoé met 25 Tōms & left", "target": " Bob"},
    "space": {"text": "Tom met ", "target": " Bob"},
    "full": {"text": "Bob" + " Bob" * 62, "target": " Bob"},  # 64 tokens without BOS
    "long": {"text": "Bob" + " Bob" * 63, "target": " Bob"},
}
WORDS = [" Mirabel", "book", "Tom a"]


@recomputes(
    "tokens",
    *("prompt", "position", "token_id", "token", "byte_start", "byte_end", "special", "bos_policy", "note"),
    key=("prompt", "position"),
)
def test_tokens(tiny):
    rows = []
    policy = "added" if tiny.bos else "tokenizer does not add it"
    two_spaces = "the text ends in a space and the target begins with one, so the answer is read after two spaces"
    for prompt, entry in TEXTS.items():
        end, length = 0, len(tiny.ids(entry["text"]))
        too_long = f"{length} tokens, beyond the {tiny.context:,} that the checkpoint states as its context"
        note = too_long if length > tiny.context else {"space": two_spaces}.get(prompt, "")
        for position, token in enumerate(tiny.ids(entry["text"])):
            special = position < len(tiny.bos)
            start, end = (0, 0) if special else (end, end + len(raw_bytes(tiny.inner, token)))
            rows.append(
                {
                    "prompt": prompt,
                    "position": position,
                    "token_id": token,
                    "token": tiny.text_of(token),
                    "byte_start": start,
                    "byte_end": end,
                    "special": special,
                    "bos_policy": policy,
                    "note": note,
                }
            )
        assert end == len(entry["text"].encode())
    assert any("<0x" in row["token"] for row in rows), "a token that is no whole character"
    return tokens.measure(tiny.checkpoint, tiny.tokenizer, tiny.settings(prompts=TEXTS)), rows


@recomputes(
    "merges",
    *("prompt", "kind", "bytes", "words", "piece", "step", "rank", "left", "right", "symbols", "token_ids"),
    key=("prompt", "kind", "piece", "step"),
)
def test_merges(tiny):
    ranked = [tuple(pair) for pair in json.loads(tiny.inner.to_str())["model"]["merges"]]
    symbol_of = {byte: symbol for symbol, byte in BYTES.items()}
    texts = [("word", word, word) for word in WORDS]
    texts += [("prompt", name, entry["text"]) for name, entry in TEXTS.items()]
    rows = []
    for kind, name, text in texts:
        same = {"prompt": name, "kind": kind, "bytes": len(text.encode()), "words": len(text.split())}
        replayed = []
        for number, piece in enumerate(cut(tiny, text)):
            steps = [(None, None, None, [symbol_of[byte] for byte in piece.encode()])]
            while found := [pair for pair in ranked if pair in pairs(steps[-1][3])]:
                left, right = found[0]
                steps.append((ranked.index((left, right)), left, right, joined(steps[-1][3], left, right)))
            ids = [tiny.inner.token_to_id(symbol) for symbol in steps[-1][3]]
            replayed += ids
            for step, (rank, left, right, symbols) in enumerate(steps):
                last = step == len(steps) - 1
                rows.append(
                    same
                    | {"piece": number, "step": step, "rank": rank, "left": left, "right": right}
                    | {"symbols": " ".join(symbols), "token_ids": " ".join(map(str, ids)) if last else ""}
                )
        assert replayed == tiny.bare(text)
    return merges.measure(tiny.tokenizer, tiny.settings(words=WORDS, prompts=TEXTS)), rows


def cut(tiny, text):
    """The pieces within which is merged, as the tokenizer itself places them in the text."""
    ends = [end for _, (_, end) in tiny.inner.pre_tokenizer.pre_tokenize_str(text)]
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def pairs(symbols):
    return set(pairwise(symbols))


def joined(symbols, left, right):
    out, i = [], 0
    while i < len(symbols):
        both = symbols[i : i + 2] == [left, right]
        out.append(left + right if both else symbols[i])
        i += 2 if both else 1
    return out
