"""The table `positions`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, number, text


class Positions(Table):
    """How position enters: by rotation, which depends on distance alone, or by a table with a row for each position."""

    probe = text(
        "`unrotated` and `rotation` (one random query and key, before and after rotation), `expected_rotation` (mean "
        "score of a random unit vector with itself), `position_norm`, `position_cosine` (rows of the position table at "
        "a distance, mean) and `token_norm` (the token's row at the same position, as it is added)"
    )
    prompt = text("prompt for `token_norm`; empty otherwise")
    offset = count("distance between query and key; for norms the position", "positions")
    query_position = count("position of the query of `rotation`; empty otherwise", "position", nullable=True)
    key_position = count("position of its key", "position", nullable=True)
    score = number("dot product, cosine or length, as the probe says")
