"""Byte-level BPE by hand: Sennrich et al. 2016, on bytes as Radford et al. 2019 have it.

A text is normalised and cut into pieces by the tokenizer's own rules, each byte becomes a visible symbol, and within a
piece the pair of neighbouring symbols whose merge has the lowest rank is joined wherever it stands, again and again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import tokenizers
from tokenizers import pre_tokenizers

from tokentrail.errors import PromptError
from tokentrail.weights.tokenizer import utf8


class Step(NamedTuple):
    """The symbols of a piece after one merge, and the merge: its rank and the two symbols that it joined."""

    rank: int | None
    left: str | None
    right: str | None
    symbols: tuple[str, ...]


def merged(symbols: Sequence[str], left: str, right: str) -> tuple[str, ...]:
    """The symbols with every occurrence of the pair joined, from left to right."""
    out: list[str] = []
    for symbol in symbols:
        if out and symbol == right and out[-1] == left:
            out[-1] = left + right
        else:
            out.append(symbol)
    return tuple(out)


def replay(symbols: Sequence[str], ranks: Mapping[tuple[str, str], int]) -> Iterator[Step]:
    """Every step from the symbols of a piece to its tokens, the symbols themselves first."""
    symbols = tuple(symbols)
    yield Step(None, None, None, symbols)
    while ranked := {pair for pair in pairwise(symbols) if pair in ranks}:
        left, right = min(ranked, key=ranks.__getitem__)
        symbols = merged(symbols, left, right)
        yield Step(ranks[left, right], left, right, symbols)


@dataclass(frozen=True)
class ByteLevelBpe:
    """The parts of a byte-level BPE tokenizer that the replay reads."""

    inner: tokenizers.Tokenizer
    pre_tokenizer: pre_tokenizers.PreTokenizer
    ranks: Mapping[tuple[str, str], int]
    vocabulary: Mapping[str, int]
    added: frozenset[str]  # tokens that are looked for in the text before anything is merged
    whole_first: bool  # a piece that is in the vocabulary is taken whole, without merging

    def pieces(self, text: str) -> list[str]:
        """The pieces that a text is cut into, each as visible symbols, one for a byte.

        Raises PromptError for a text with half a surrogate pair, or with a token that the tokenizer takes out whole.
        """
        utf8(text)
        if self.inner.normalizer is not None:
            text = self.inner.normalizer.normalize_str(text)
        if special := sorted(token for token in self.added if token in text):
            raise PromptError(
                f"{text[:40]!r} holds {special[0]!r}, which the tokenizer takes out whole before it merges; "
                f"leave it out"
            )
        return [piece for piece, _ in self.pre_tokenizer.pre_tokenize_str(text)]

    def inside_a_text(self) -> ByteLevelBpe:
        """The same without the space that some put before a text."""
        other = pre_tokenizers.ByteLevel()
        stated = self.pre_tokenizer.__getstate__()
        other.__setstate__(stated.replace(b'"add_prefix_space":true', b'"add_prefix_space":false'))
        return replace(self, pre_tokenizer=other)

    def steps(self, symbols: str) -> Iterator[Step]:
        """The steps of one piece."""
        if self.whole_first and len(symbols) > 1 and symbols in self.vocabulary:
            yield Step(None, None, None, tuple(symbols))
            yield Step(None, None, None, (symbols,))
        else:
            yield from replay(symbols, self.ranks)

    def ids(self, symbols: Sequence[str]) -> list[int]:
        """The token ids of symbols. Raises PromptError for a symbol that is no token."""
        if unknown := [symbol for symbol in symbols if symbol not in self.vocabulary]:
            raise PromptError(f"the tokenizer has no token for the symbol {unknown[0]!r}, so it cannot read the text")
        return [self.vocabulary[symbol] for symbol in symbols]


def byte_level_bpe(inner: tokenizers.Tokenizer) -> ByteLevelBpe | None:
    """The byte-level BPE inside a tokenizer; None if it is of another kind, or drops merges at random."""
    description = json.loads(inner.to_str())
    model = description["model"]
    plain = not any(
        model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")
    )
    if model.get("type") != "BPE" or not plain or not _cuts_to_bytes(description["pre_tokenizer"]):
        return None
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    return ByteLevelBpe(
        inner=inner,
        pre_tokenizer=inner.pre_tokenizer,
        ranks={(left, right): rank for rank, (left, right) in enumerate(pairs)},
        vocabulary=model["vocab"],
        added=frozenset(token["content"] for token in description["added_tokens"]),
        whole_first=bool(model.get("ignore_merges")),
    )


def _cuts_to_bytes(pre_tokenizer: dict[str, Any] | None) -> bool:
    if pre_tokenizer is None:
        return False
    parts = pre_tokenizer["pretokenizers"] if pre_tokenizer["type"] == "Sequence" else [pre_tokenizer]
    return any(part["type"] == "ByteLevel" for part in parts)
