"""The table `merges`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, text


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
