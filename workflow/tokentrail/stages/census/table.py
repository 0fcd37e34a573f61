"""The table `census`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, prob, text


class Census(Table):
    """Every stored tensor, counted by family."""

    tensor = text("tensor name in the checkpoint")
    shape = text("shape as stored, for example `576x1536`")
    stored_dtype = text("number format that the source stores")
    parameters = count("numbers in the tensor", "parameters")
    counted_parameters = count("the same, or 0 if a tied tensor with the same storage was counted before", "parameters")
    stored_bytes = count("bytes that the tensor takes in its source file", "bytes")
    family = text(
        "`token_embedding`, `position_embedding`, `attention`, `mamba2`, `ffn`, `norm` or `head`",
        regex="^(token_embedding|position_embedding|attention|mamba2|ffn|norm|head)$",
    )
    storage = text("name of the storage; tied tensors share it and count once")
    family_share = prob("share of the family in all counted parameters")
