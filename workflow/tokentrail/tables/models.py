"""The tables of what a model is and of whether its pass is right."""

from __future__ import annotations

from tokentrail.tables.columns import Table, count, flag, number, prob, text


class Weights(Table):
    """Every file that the model is made from, hashed."""

    file = text("file name inside its source; for a derived file, the name that it was given")
    bytes = count("size of the file", "bytes")
    sha256 = text("SHA-256 of the file's content, hexadecimal", regex="^[0-9a-f]{64}$")
    role = text(
        "`source` as fetched, or `derived` from a source file by a conversion or a change", regex="^(source|derived)$"
    )
    source_kind = text("`package`, `hub` or `folder`", regex="^(package|hub|folder)$")
    source = text("package name, hub repository, or folder name")
    revision = text("package version, hub commit, or empty for a folder")
    license = text("license as the configuration or the source states it; empty if neither does")
    stored_dtype = text("number formats of the tensors in the file; empty for files without tensors")
    pinned = text(
        "`config`: the hash was given in the configuration; `lock`: it was recorded on first use and held since; "
        "`derived`: made here from pinned files",
        regex="^(config|lock|derived)$",
    )
    changes = text("what the configuration changes in a derived `config.json`, as JSON; empty if nothing")


class Cells(Table):
    """The model's frame and cells, as the forward pass reads them: what differs between models."""

    part = text("`embed`, `mixer`, `ffn`, `norm`, `residual`, `unembed` or `size`")
    cell = text("name of the cell or quantity")
    layers = text("layers that it applies to, as ranges; empty if it is not a layer's")
    detail = text("the numbers that it runs with")


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


class Parity(Table):
    """Ours against transformers (eager, float32) and both against our float64 pass. This table is a gate."""

    prompt = text("prompt name")
    position = count("position in the input", "position")
    max_abs_logit_diff = number("largest |ours - transformers| over the vocabulary, float32", "logit", min=0.0)
    mean_abs_logit_diff = number("mean |ours - transformers| over the vocabulary, float32", "logit", min=0.0)
    top1_agrees = flag("ours and transformers name the same first token")
    max_abs_error_ours = number("largest |ours in float32 - ours in float64|", "logit", min=0.0)
    max_abs_error_reference = number("largest |transformers in float32 - ours in float64|", "logit", min=0.0)
    max_abs_logit = number(
        "largest |logit| of the float64 pass: the scale to judge the differences by", "logit", min=0.0
    )
    tolerance = number("largest max_abs_logit_diff that passes the gate", "logit", min=0.0)


class ParityLayers(Table):
    """Where the two passes part: the largest difference at each site both can show."""

    prompt = text("prompt name")
    layer = count("layer; the number of layers for `final_norm` and `logits`", "layer")
    site = text("site name: resid_pre, mixer_in, mixer_out, ffn_in, ffn_out, resid_post, final_norm, logits")
    max_abs_diff = number("largest |ours - transformers| over positions and channels, float32", "activation", min=0.0)
    max_abs_value = number(
        "largest |value| of the reference at the site: the scale of the difference", "activation", min=0.0
    )
