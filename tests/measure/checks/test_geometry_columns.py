"""`geometry` and `positions`, from the stored tables as plain lists."""

from __future__ import annotations

import math

import torch
from column_checks import recomputes
from definitions import deviation, euclidean, in_order, mean
from tiny_models import VOCABULARY
from tokentrail.stages.geometry import measure as geometry
from tokentrail.stages.positions import measure as positions

WORDS = [" Alice", " book", " Mirabel"]
PAIRS = [[" Alice", " book"], [" Bob", " Paris"]]
ANALOGIES = {"one": {"plus": [" book", " Alice"], "minus": [" Bob"]}, "two": {"plus": [" Paris"], "minus": [" Bob"]}}
NEIGHBOURS, RANDOM, SEED = 4, 50, 3


def rows_of(tiny, *names):
    stored = tiny.weights()
    (name,) = [stored_name for stored_name in stored if stored_name.endswith(names)]
    return stored[name].double().tolist()


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return dot(a, b) / euclidean(a) / euclidean(b)


@recomputes(
    "geometry",
    *("probe", "token", "pieces", "neighbour", "rank", "cosine", "deviation", "value"),
    key=("probe", "token", "neighbour", "rank"),
)
def test_geometry(tiny):
    table = rows_of(tiny, "wte.weight", "embed_tokens.weight")
    assert len(table) > VOCABULARY, "some rows belong to no token"
    rows = []

    def row(probe, token, **more):
        empty = {"pieces": 1, "neighbour": "", "rank": None, "cosine": None, "deviation": None, "value": None}
        rows.append({"probe": probe, "token": token} | empty | more)

    def nearest(probe, token, vector, without):
        cosines = [cosine(vector, other) for other in table[:VOCABULARY]]
        found = [i for i in in_order(cosines) if i not in without][:NEIGHBOURS]
        for rank, i in enumerate(found):
            row(probe, token, neighbour=tiny.text_of(i), rank=rank, cosine=cosines[i])

    lengths = [euclidean(x) for x in table[:VOCABULARY]]
    shortest_first = sorted(range(VOCABULARY), key=lambda i: lengths[i])
    for share in (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0):
        rank = round(share * (VOCABULARY - 1))
        row("token_norm", tiny.text_of(shortest_first[rank]), rank=rank, value=lengths[shortest_first[rank]])
    row("token_norm", "", value=mean(lengths))
    if tiny.name == "gpt2":
        row("position_norm", "", value=mean([euclidean(x) for x in rows_of(tiny, "wpe.weight")]))
    shuffled = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(SEED)).tolist()
    for word in WORDS:
        own, *more = tiny.bare(word)
        if more:
            row("neighbours", word, pieces=1 + len(more))
            continue
        for channel in range(6):
            row("row", word, rank=channel, value=table[own][channel])
        nearest("neighbours", word, table[own], [own])
        drawn = [cosine(table[own], table[i]) for i in shuffled if i != own][:RANDOM]
        row("random", word, cosine=mean(drawn), deviation=deviation(drawn))
    for one, other in PAIRS:
        ids = tiny.bare(one), tiny.bare(other)
        pieces = max(len(i) for i in ids)
        angle = cosine(table[ids[0][0]], table[ids[1][0]]) if pieces == 1 else None
        row("pair", one, neighbour=other, pieces=pieces, cosine=angle)
    book, alice, bob = (tiny.bare(word)[0] for word in (" book", " Alice", " Bob"))
    vector = [a + b - c for a, b, c in zip(table[book], table[alice], table[bob], strict=True)]
    nearest("analogy", " book + Alice − Bob", vector, [book, alice, bob])
    nearest("analogy_all", " book + Alice − Bob", vector, [])
    row("analogy", " Paris − Bob", pieces=2)
    settings = {"words": WORDS, "pairs": PAIRS, "analogies": ANALOGIES}
    settings |= {"neighbours": NEIGHBOURS, "random": RANDOM, "seed": SEED}
    return geometry.measure(tiny.checkpoint, tiny.tokenizer, tiny.settings(**settings)), rows


PLACES = [[17, 5], [112, 100], [9, 9]]


@recomputes(
    "positions",
    *("probe", "prompt", "offset", "query_position", "key_position", "score"),
    key=("probe", "prompt", "offset", "query_position"),
    rel=1e-5,
    close=1e-5,  # the random vectors are turned in float32
)
def test_positions(tiny):
    rows = []

    def row(probe, offset, score, prompt="", query=None, key=None):
        at = {"prompt": prompt, "offset": offset, "query_position": query, "key_position": key}
        rows.append({"probe": probe, "score": score} | at)

    if tiny.name == "qwen3":
        size, theta = tiny.config["head_dim"], tiny.config["rope_theta"]
        turns = [theta ** (-2 * i / size) for i in range(size // 2)]
        generator = torch.Generator().manual_seed(SEED)
        q, k = (torch.randn(size, generator=generator).tolist() for _ in range(2))
        row("unrotated", 0, dot(q, k))
        for query, key in PLACES:
            row("rotation", query - key, dot(turned(q, query, turns), turned(k, key, turns)), query=query, key=key)
        for offset in distances(tiny.config["max_position_embeddings"]):
            row("expected_rotation", offset, mean([math.cos(offset * turn) for turn in turns]))
    if tiny.name == "gpt2":
        table = rows_of(tiny, "wpe.weight")
        for position, vector in enumerate(table):
            row("position_norm", position, euclidean(vector))
        for offset in distances(len(table)):
            pairs = [cosine(table[i], table[i + offset]) for i in range(len(table) - offset)]
            row("position_cosine", offset, mean(pairs))
        tokens = rows_of(tiny, "wte.weight")
        for prompt, ids, _ in tiny.prompts():
            for position, token in enumerate(ids):
                row("token_norm", position, euclidean(tokens[token]), prompt)
    settings = tiny.settings(pairs=PLACES, seed=SEED)
    return positions.measure(tiny.checkpoint, tiny.tokenizer, settings), rows


def turned(x, position, turns):
    """Channel i and channel i + half turn together by the angle of pair i."""
    half = len(turns)
    out = list(x)
    for i, turn in enumerate(turns):
        cos, sin = math.cos(position * turn), math.sin(position * turn)
        out[i], out[i + half] = x[i] * cos - x[i + half] * sin, x[i + half] * cos + x[i] * sin
    return out


def distances(longest):
    """0 and the nearest whole numbers to the quarter powers of 2, below `longest`."""
    found, power = {0}, 0
    while 2 ** (power / 4) < longest:
        found.add(round(2 ** (power / 4)))
        power += 1
    return sorted(offset for offset in found if offset < longest)
