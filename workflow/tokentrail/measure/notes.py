"""What is to be known of how a prompt is read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import takewhile

from tokentrail.weights.tokenizer import Tokenizer

LOG = logging.getLogger(__name__)


def log_notes(tokenizer: Tokenizer, context: int, name: str, text: str, target: str) -> str:
    """What is to be known of how a prompt is read, said in the log as well; "" if nothing is.

    `context` is the number of tokens that the checkpoint states as its context.
    """
    said = "; ".join(notes(tokenizer, context, text, target))
    if said:
        LOG.warning("prompt %s: %s", name, said)
    return said


def notes(tokenizer: Tokenizer, context: int, text: str, target: str) -> Iterator[str]:
    """Whatever makes a text other than it looks, and is measured all the same."""
    ids = tokenizer.encode(text)
    begins = len(list(takewhile(lambda i: i == tokenizer.bos_id, ids)))
    if begins > 1:
        bos = tokenizer.token(ids[0])
        added = "the policy adds one and the text has its own" if tokenizer.prefix else "the text has them"
        yield f"read after {begins} BOS tokens ({bos}): {added}"
    if found := tokenizer.special_in(text):
        yield f"holds {', '.join(map(repr, found))}, which is read as a special token wherever it stands"
    if plain := [name for name in tokenizer.without_id if name in text]:
        yield (
            f"holds {plain[0]!r}, which the tokenizer files name as a token and give no id: it is read as plain text, "
            f"where transformers makes up an id that the model has never seen"
        )
    if tokenizer.rebuilt is not None:
        cls, theirs = tokenizer.rebuilt
        if theirs.encode(text, add_special_tokens=False).ids != ids[len(tokenizer.prefix) :]:
            yield f"cut as tokenizer.json says; transformers takes the rules of its class {cls} and cuts it otherwise"
    if len(ids) > context:
        yield f"{len(ids):,} tokens, beyond the {context:,} that the checkpoint states as its context"
    if text.endswith(" ") and target.startswith(" "):
        yield "the text ends in a space and the target begins with one, so the answer is read after two spaces"
