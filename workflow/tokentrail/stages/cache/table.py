"""The table `cache`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, flag, number, text


class Cache(Table):
    """Decode with a cache against full recomputation, ours and transformers', and the bytes that the cache holds."""

    prompt = text("prompt name")
    kind = text(
        "`decode` (the prompt, then one token a call), `chunked_prefill` (the prompt in pieces), `continuation` (the "
        "prompt, then several tokens in one call) or `batch` (prompts of unequal length as the rows of one batch, then "
        "one token a call)",
        regex="^(decode|chunked_prefill|continuation|batch)$",
    )
    piece = count("tokens that a call brings, but for the prompt itself and for a rest", "tokens", min=1)
    step = count("call, 0 is the first", "call")
    token = text("the last token that the call brings")
    tokens = count("tokens that the call brings to this row", "tokens", min=1)
    max_abs_logit_diff = number(
        "largest |cached - recomputed| of our pass, over the vocabulary and the call's tokens (for `batch`, the row's "
        "last); `decode` and `batch` recompute for every call, the others once",
        "logit",
        min=0.0,
    )
    mean_abs_logit_diff = number("mean |cached - recomputed| of our pass", "logit", min=0.0)
    top1_agrees = flag("cached and recomputed name the same first token, at every token compared")
    reference_max_abs_logit_diff = number(
        "largest |cached - recomputed| of transformers; its batch is padded on the left; this and its other cached "
        "figures are empty for a model without attention, of which it keeps no cache",
        "logit",
        min=0.0,
        nullable=True,
    )
    reference_mean_abs_logit_diff = number(
        "mean |cached - recomputed| of transformers", "logit", min=0.0, nullable=True
    )
    reference_top1_agrees = flag("the same of transformers' two first tokens", nullable=True)
    max_abs_error_ours = number("largest |ours cached - ours in float64, recomputed|", "logit", min=0.0)
    max_abs_error_ours_full = number("the same of ours recomputed in float32", "logit", min=0.0)
    max_abs_error_reference = number(
        "largest |transformers cached - ours in float64, recomputed|", "logit", min=0.0, nullable=True
    )
    max_abs_error_reference_full = number("the same of transformers recomputed", "logit", min=0.0)
    cache_tokens = count("tokens of this row that the cache has read after the call", "tokens", min=1)
    kv_bytes = count("bytes of this row's keys and values up to there", "bytes")
    conv_bytes = count("bytes of this row's convolution windows", "bytes")
    state_bytes = count("bytes of this row's SSM states", "bytes")
    formula_bytes = count("what the three must add up to, from the numbers of the spec alone", "bytes")
    reserved_bytes = count("what is set aside for this row from the start, room for more tokens included", "bytes")
