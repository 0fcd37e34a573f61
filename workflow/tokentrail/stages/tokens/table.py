"""The table `tokens`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, flag, text


class Tokens(Table):
    """The prompt, cut into tokens."""

    prompt = text("prompt name")
    position = count("position in the input, BOS included", "position")
    token_id = count("token id", "id")
    token = text("the token's text; bytes that are no whole character are shown as <0xNN>")
    byte_start = count("first byte of the token in the prompt's UTF-8", "bytes")
    byte_end = count("one past its last byte", "bytes")
    special = flag("a token that the tokenizer added (BOS), which covers no byte of the prompt")
    bos_policy = text(
        "`added` (`guessed from its name` where no file states it), `left off, as bos: never asks`, `tokenizer has "
        "none` or `tokenizer does not add it`; and what the tokenizer would put after a text, which is left off"
    )
    note = text(
        "what makes the prompt other than it looks: two BOS tokens, special tokens in it, two spaces before the "
        "target, a length beyond the stated context, or a cut that transformers makes otherwise; empty otherwise"
    )
