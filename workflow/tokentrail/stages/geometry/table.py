"""The table `geometry`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, text


class Geometry(Table):
    """The token table as vectors: lengths of its rows, and which rows point the same way."""

    probe = text(
        "`token_norm` and `position_norm` (lengths of rows: by order, and their mean), `row` (first values), "
        "`neighbours`, `random` (against a seeded sample of tokens), `pair`, `analogy` (the words put in are left out) "
        "and `analogy_all` (they are not)"
    )
    token = text("the word that is asked about; for a norm, the token whose row has it; empty for a mean")
    pieces = count("pieces that the tokenizer cuts the word into; a word of several has no row of its own", "tokens")
    neighbour = text("the other token; empty where there is none")
    rank = count("rank of the neighbour, of the norm (0 is the shortest), or number of the channel", nullable=True)
    cosine = number("cosine of the two rows; for `random`, the mean", min=-1.0 - 1e-6, max=1.0 + 1e-6, nullable=True)
    deviation = number("standard deviation of the cosines of `random`", min=0.0, nullable=True)
    value = number("length of the row, or a value in it", "embedding", nullable=True)
