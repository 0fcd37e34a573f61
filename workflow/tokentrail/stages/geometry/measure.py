"""The token table as vectors: how long its rows are, and which of them point the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward.families import read_spec
from tokentrail.measure.asked import asked
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.rows import StoredTable
from tokentrail.weights.tokenizer import Tokenizer

QUANTILES = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
FIRST_VALUES = 6


class TokenRows:
    """The token table with what all probes share: row lengths, and which rows belong to a token at all."""

    def __init__(self, checkpoint: Checkpoint, tokenizer: Tokenizer):
        self.table, self.tokenizer = StoredTable(checkpoint, "tokens"), tokenizer
        self.norms = self.table.norms()
        ids = torch.tensor(sorted(tokenizer.ids))
        self.used = torch.zeros(self.table.rows, dtype=torch.bool)  # padding rows have no token
        self.used[ids[ids < self.table.rows]] = True

    def cosines(self, vectors: Tensor) -> Tensor:
        """Cosine of every row with each of vectors (n, width): (rows, n); rows without a token or length get -1."""
        cosines = self.table.products(vectors / vectors.norm(dim=1, keepdim=True)) / self.norms[:, None]
        cosines[~self.used | (self.norms == 0)] = -1.0
        return cosines.clamp(-1, 1)

    def nearest(self, cosines: Tensor, count: int, without: list[int]) -> list[tuple[int, float]]:
        """The ids of the largest of cosines (rows), and the cosines; ties go to the lower id."""
        cosines = cosines.clone()
        cosines[without] = -torch.inf
        found = torch.argsort(cosines, descending=True, stable=True)[: min(count, int(self.used.sum()) - len(without))]
        return [(int(i), cosines[i].item()) for i in found]


@torch.inference_mode()
def measure(checkpoint: Checkpoint, tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `geometry`. The tables are read in blocks, in float64; a word of several pieces is noted as such."""
    tokens = TokenRows(checkpoint, tokenizer)
    refused: list[dict[str, Any]] = []
    rows = [*norms(tokens, checkpoint), *words(tokens, settings, refused), *pairs(tokens, settings, refused)]
    rows += analogies(tokens, settings, refused)
    empty = {"pieces": 1, "neighbour": "", "rank": None, "cosine": None, "deviation": None, "value": None}
    return tables.frame("geometry", [empty | row for row in rows], refused, model=settings["model"])


def norms(tokens: TokenRows, checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
    """Lengths of rows at some quantiles, each with the token that has it, and the means of both tables."""
    used = tokens.used.nonzero()[:, 0]
    lengths, order = tokens.norms[used].sort(stable=True)
    for quantile in QUANTILES:
        rank = round(quantile * (len(order) - 1))
        token = tokens.tokenizer.token(int(used[order[rank]]))
        yield {"probe": "token_norm", "token": token, "rank": rank, "value": lengths[rank].item()}
    yield {"probe": "token_norm", "token": "", "value": lengths.mean().item()}
    if read_spec(checkpoint.config).learned_positions is not None:
        mean = StoredTable(checkpoint, "positions").norms().mean()
        yield {"probe": "position_norm", "token": "", "value": mean.item()}


def words(tokens: TokenRows, settings: dict[str, Any], refused: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """First values, neighbours and random baseline of each word that is one token."""
    ids: dict[str, list[int]] = {}
    for word in settings["words"]:
        with asked(refused, probe="neighbours", token=word):
            ids[word] = tokens.tokenizer.word(word)
    for word, pieces in ids.items():
        if len(pieces) > 1:
            yield {"probe": "neighbours", "token": word, "pieces": len(pieces)}
    single = {word: pieces[0] for word, pieces in ids.items() if len(pieces) == 1}
    if not single:
        return
    vectors = torch.stack([tokens.table.row(i) for i in single.values()])
    cosines = tokens.cosines(vectors)  # (rows, words)
    for place, (word, own) in enumerate(single.items()):
        for channel in range(min(FIRST_VALUES, tokens.table.width)):
            yield {"probe": "row", "token": word, "rank": channel, "value": vectors[place, channel].item()}
        for rank, (i, cosine) in enumerate(tokens.nearest(cosines[:, place], settings["neighbours"], [own])):
            yield {
                "probe": "neighbours",
                "token": word,
                "neighbour": tokens.tokenizer.token(i),
                "rank": rank,
                "cosine": cosine,
            }
        others = sample(tokens, own, settings["random"], settings["seed"])
        drawn = cosines[others, place]
        yield {
            "probe": "random",
            "token": word,
            "cosine": drawn.mean().item(),
            "deviation": drawn.std(correction=0).item(),
        }


def sample(tokens: TokenRows, without: int, count: int, seed: int) -> Tensor:
    """Ids of tokens drawn without replacement, the same for every word but for `without`."""
    ids = tokens.used.nonzero()[:, 0]
    drawn = ids[torch.randperm(len(ids), generator=torch.Generator().manual_seed(seed))]
    return drawn[drawn != without][:count]


def pairs(tokens: TokenRows, settings: dict[str, Any], refused: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for one, other in settings["pairs"]:
        with asked(refused, probe="pair", token=one, neighbour=other):
            ids = [tokens.tokenizer.word(word) for word in (one, other)]
            row = {"probe": "pair", "token": one, "neighbour": other, "pieces": max(map(len, ids))}
            if row["pieces"] == 1:
                a, b = (tokens.table.row(i[0]) for i in ids)
                row["cosine"] = torch.cosine_similarity(a, b, dim=0).item()
            yield row


def analogies(tokens: TokenRows, settings: dict[str, Any], refused: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Nearest rows to a sum of rows, without the words that were put in and with them (Mikolov et al. 2013)."""
    for analogy in settings["analogies"].values():
        terms = [(word, sign) for sign, key in ((1.0, "plus"), (-1.0, "minus")) for word in analogy[key]]
        name, ids = sum_of(analogy), []
        with asked(refused, probe="analogy", token=name):
            ids = [tokens.tokenizer.word(word) for word, _ in terms]
        if not ids:
            continue
        if max(map(len, ids)) > 1:
            yield {"probe": "analogy", "token": name, "pieces": max(map(len, ids))}
            continue
        put_in = [i for (i,) in ids]
        vector = sum(sign * tokens.table.row(i) for i, (_, sign) in zip(put_in, terms, strict=True))
        cosines = tokens.cosines(vector[None])[:, 0]
        for probe, without in (("analogy", put_in), ("analogy_all", [])):
            for rank, (i, cosine) in enumerate(tokens.nearest(cosines, settings["neighbours"], without)):
                found = {"neighbour": tokens.tokenizer.token(i), "rank": rank, "cosine": cosine}
                yield {"probe": probe, "token": name} | found


def sum_of(analogy: dict[str, list[str]]) -> str:
    """The analogy as it is read: ` king + woman − man`, each word with its own leading space or none."""
    return " +".join(analogy["plus"]) + "".join(f" −{word}" for word in analogy["minus"])
