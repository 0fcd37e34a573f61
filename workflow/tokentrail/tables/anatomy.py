"""The tables of what tokens, positions and layers are made of."""

from __future__ import annotations

from tokentrail.tables.columns import Table, count, number, prob, text


class Merges(Table):
    """Byte-level BPE replayed: which two symbols were joined, one step after the other."""

    prompt = text("the word or number as configured, or the name of a prompt")
    kind = text("`word` or `prompt`", regex="^(word|prompt)$")
    bytes = count("length of the text in UTF-8", "bytes", min=1)
    words = count("words of the text, as white space divides them; at least 1", "words", min=1)
    piece = count("piece of the text that the tokenizer cuts off before it merges; nothing is merged across", "piece")
    step = count("merges done; 0 shows the piece's bytes as visible symbols", "step")
    rank = count(
        "place of the merge in the tokenizer's list, 0 is merged first; empty at step 0, and where the tokenizer takes "
        "a piece whole from its vocabulary",
        "rank",
        nullable=True,
    )
    left = text("left symbol of the pair that was joined; empty if rank is", nullable=True)
    right = text("right symbol of the pair", nullable=True)
    symbols = text("the piece's symbols after the step, joined by spaces; `Ġ` is a space")
    token_ids = text("ids of the symbols after the piece's last step, joined by spaces; empty before it")


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


class Block(Table):
    """One layer of each kind, step by step: every tensor that the model's own pass makes on the way."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    order = count("place of the step", "step")
    step = text("what the step makes")
    site = text("site of the pass at which it was recorded")
    shape = text("shape, for example `1x18x576`")
    l2_norm = number("Euclidean length at the last position", "activation", min=0.0)
    rms = number("root mean square at the last position", "activation", min=0.0)
    mean = number("mean at the last position", "activation")
    deviation = number("population standard deviation at the last position", "activation", min=0.0)


class Mlp(Table):
    """What stands between the two matrices of each FFN: how much of it is close to nothing, and how far it reaches."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    position = count("position in the input", "position")
    width = count("channels", "channels", min=1)
    near_zero_fraction = prob("share of channels with |value| < 0.01")
    negative_fraction = prob("share of channels below 0")
    max = number("largest value", "activation")
    min = number("smallest value", "activation")


class Arithmetic(Table):
    """Sizes and work that follow from the shapes alone, with the formula of each."""

    subject = text("`model`, or the name of a hypothetical model or payload of the configuration")
    quantity = text("`parameters`, `payload`, `cache`, `activation` or `flops`")
    part = text("part of the model, number format, or what is kept")
    layers = count("layers that hold the part; `value` is for all of them", "layers")
    rows = count("sequences in the batch; 0 where it does not matter", "rows")
    tokens = count("tokens of each; 0 where it does not matter", "tokens")
    value = count("the quantity", "parameters, bytes or operations")
    formula = text("the product that it is, in numbers")
