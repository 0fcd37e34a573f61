"""Every table of a run: its columns, types, units and meaning, declared once.

Reading and writing go through `read` and `write`; `docs.py` makes the data dictionary in `config/README.md` from
the same declarations. Conventions: layers, positions and ranks are zero-based; probabilities are after the full
softmax; KL is in nats and names its direction.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import dataframely as dy
import polars as pl

from tokentrail.errors import TableError

SCHEMA_VERSION = "1"
SPANNING = ("reproduction",)
"""The tables that hold all models' rows in one file; every other table is one model's."""


def text(description: str, **options) -> dy.String:
    return dy.String(description=description, **options)


def count(description: str, unit: str = "count", **options) -> dy.Int64:
    return dy.Int64(description=description, metadata={"unit": unit}, **{"min": 0, **options})


def number(description: str, unit: str = "", **options) -> dy.Float64:
    return dy.Float64(description=description, metadata={"unit": unit}, **options)


def prob(description: str, **options) -> dy.Float64:
    return number(description, "probability", min=0.0, max=1.0 + 1e-9, **options)


def flag(description: str, **options) -> dy.Bool:
    return dy.Bool(description=description, **options)


class Table(dy.Schema):
    """A table of one model; `model` comes first."""

    model = text("model name, as in the configuration", min_length=1)


class Weights(Table):
    """Every file that the model is made from, hashed."""

    file = text("file name inside its source; for a derived file, the name that it was given")
    bytes = count("size of the file", "bytes")
    sha256 = text("SHA-256 of the file's content, hexadecimal", regex="^[0-9a-f]{64}$")
    role = text("`source` as fetched, or `derived` from a source file by a conversion", regex="^(source|derived)$")
    source_kind = text("`package`, `hub` or `folder`", regex="^(package|hub|folder)$")
    source = text("package name, hub repository, or folder name")
    revision = text("package version, hub commit, or empty for a folder")
    license = text("license as the configuration or the source states it; empty if neither does")
    stored_dtype = text("number format(s) of the tensors in the file; empty for files without tensors")
    pinned = text(
        "`config`: the hash was given in the configuration; `lock`: it was recorded on first use and held since; "
        "`derived`: made here from pinned files",
        regex="^(config|lock|derived)$",
    )


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
    bos_policy = text("`added`, `tokenizer has none` or `tokenizer does not add it`")


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


class NextToken(Table):
    """The first tokens of the last position's distribution; the target is always among the rows."""

    prompt = text("prompt name")
    rank = count("rank of the token, 0 is the most likely", "rank")
    token_id = count("token id", "id")
    token = text("the token's text")
    logit = number("logit", "logit")
    probability = prob("probability after the full softmax")
    nll = number("negative log probability", "nats", min=-1e-9)
    is_target = flag("the row is the prompt's target")


class Distribution(Table):
    """The whole distribution of a position in a few numbers: as computed, under decoding rules, and going on."""

    prompt = text("prompt name; for a combination of an experiment, the experiment's name and the levels")
    experiment = text("name of the factorial experiment; empty for a configured prompt")
    levels = text("`factor: level` of each factor, joined by commas; empty for a configured prompt")
    tokens = count("tokens of the input, with those that were appended", "tokens", min=1)
    step = count("tokens appended greedily before this position; 0 is the prompt's own last position", "tokens")
    decoding = text(
        "`none` (as computed), or what a decoder makes of the same logits without running the model again: "
        "`temperature t`, `top-k k`, `top-p p`"
    )
    top1_token = text("most likely token: what greedy decoding appends next")
    top1_probability = prob("its probability")
    target_probability = prob("probability of the prompt's target")
    target_rank = count("rank of the target in the logits; no decoding rule changes it", "rank")
    tokens_left = count("tokens that the decoding rule leaves a probability", "tokens", min=1)
    entropy_bits = number("entropy", "bits", min=-1e-9)
    effective_choices = number(
        "2 to the power of the entropy: equally likely tokens with the same entropy", "tokens", min=0.0
    )
    top5_mass = prob("probability of the five most likely tokens together")
    tokens_for_90_percent = count("fewest tokens that together hold 90% of the probability", "tokens", min=1)
    vocabulary = count("tokens in the vocabulary", "tokens", min=1)


class NameSwaps(Table):
    """One row for each template and name: is the name that was in the sentence the answer?"""

    set = text("name of the swap set in the configuration")
    template = text("template name")
    name = text("the name put in")
    target_token = text("first piece of the name, as the tokenizer cuts it in context")
    pieces = count("pieces that the tokenizer cuts the name into", "tokens", min=1)
    probability = prob("probability of the first piece at the last position")
    rank = count("rank of the first piece", "rank")
    top1_token = text("most likely token")
    top1_probability = prob("its probability")
    name_nll = number("negative log probability of the whole name, all pieces", "nats", min=-1e-9)


class NameSwapsSummary(Table):
    """The name swaps, averaged over names, with bootstrap percentile intervals over names."""

    set = text("name of the swap set")
    template = text("template name, or `all` for all templates of the set")
    rows = count("template and name pairs averaged", "rows", min=1)
    names = count("distinct names, the units that are resampled", "names", min=1)
    quantity = text("`probability`, `name_nll` or `top1_rate`")
    mean = number("mean over rows", "as the quantity")
    low = number("lower end of the interval", "as the quantity")
    high = number("upper end of the interval", "as the quantity")
    level = prob("level of the interval")


class Reproduction(Table):
    """Published figures held against this run. `model` is `none` for a figure that no single model gives."""

    id = text("id of the figure in its ledger", min_length=1)
    stage = text("stage that the ledger counts it to")
    input = text("input that it was published for")
    quantity = text("what it is")
    unit = text("unit of `published` and `measured`; empty without one")
    published = text("the value as printed")
    measured = text("what this run measured; empty if it did not")
    published_value = number("`published`, if it is a number", "as `unit`", nullable=True)
    measured_value = number("`measured`, if it is a number", "as `unit`", nullable=True)
    tolerance_kind = text(
        "how the ledger judges it: `exact`, `abs`, `rel`, `at_least`, `at_most`, or `report` for not at all",
        regex="^(exact|abs|rel|at_least|at_most|report)$",
    )
    tolerance = number(
        "difference that is allowed for, float noise included; empty where the values must be the same, and where "
        "nothing is judged",
        "as `unit`",
        min=0.0,
        nullable=True,
    )
    status = text(
        "`reproduced`; `differs`; `shown`, not judged: of the author's own machine, or made with an input that is not "
        "printed; or `not_run`, with the reason in `note`",
        regex="^(reproduced|differs|shown|not_run)$",
    )
    note = text("why it was not run, what a judgement rests on, and what the ledger notes")


class Lens(Table):
    """The logit lens: what the last position would answer if the model stopped at each site."""

    prompt = text("prompt name")
    variant = text("`as_trained`; `attention_off` beside it where Mamba2 layers are left to carry on alone")
    layer = count("layer; `embed` stands at layer 0 before any layer", "layer")
    site = text("`embed`, `resid_mid`, `resid_post`")
    target_probability = prob("probability of the target")
    target_rank = count("rank of the target", "rank")
    top1_token = text("most likely token")
    top1_probability = prob("its probability")
    entropy_bits = number("entropy", "bits", min=-1e-9)
    kl_to_final = number("KL(final output of the same variant || lens)", "nats", min=-1e-6)


class Residual(Table):
    """Size of the stream and of what is added to it, at every position."""

    prompt = text("prompt name")
    position = count("position in the input", "position")
    layer = count("layer; the number of layers for `final_norm`", "layer")
    site = text("embed, resid_pre, mixer_in, mixer_out, resid_mid, ffn_in, ffn_out, resid_post or final_norm")
    l2_norm = number("Euclidean length", "activation", min=0.0)
    rms = number("root mean square over channels", "activation", min=0.0)
    mean = number("mean over channels", "activation")


class Ablations(Table):
    """What the last position answers when a part is switched off or swapped."""

    prompt = text("prompt name")
    component = text(
        "`clean` (nothing changed), `mixer`, `ffn`, `head`, `all attention`, `all mamba2`, or `mamba2 from layer k`"
    )
    mixer = text("`attention` or `mamba2` for a mixer or a head; empty otherwise")
    layers = text("layers changed, as ranges; empty for `clean`")
    heads = text("head changed; empty for all of the layer")
    operation = text(
        "`zero`, `mean` (over the reference prompts) or `resample` (from another prompt); `none` for `clean`"
    )
    target_probability = prob("probability of the target")
    target_rank = count("rank of the target", "rank")
    top1_token = text("most likely token")
    top1_probability = prob("its probability")
    kl = number("KL(clean || changed)", "nats", min=-1e-6)
    planned_edits = count("edits that the variant plans, one for each layer", "edits")
    applied_edits = count("edits that the pass applied", "edits")


class FillerSweep(Table):
    """The name further and further away: head, n fillers, tail."""

    filler = text("filler name")
    repeats = count("times that the filler stands between head and tail", "repeats")
    tokens = count("tokens of the whole input", "tokens", min=1)
    distance = count("tokens from the name's last piece to the last token", "tokens")
    variant = text("`as_trained`, or `attention_off` (every attention layer adds nothing)")
    target_probability = prob("probability of the target; empty unless status is ok", nullable=True)
    target_rank = count("rank of the target", "rank", nullable=True)
    top1_token = text("most likely token", nullable=True)
    top1_probability = prob("its probability", nullable=True)
    status = text("`ok`, or `exceeds_positions` where the model has no such position", regex="^(ok|exceeds_positions)$")


class LongRange(Table):
    """What reaches the last token from the name, however far: attention weight, and what Mamba2's decay leaves."""

    filler = text("filler name")
    repeats = count("times that the filler stands between head and tail", "repeats")
    tokens = count("tokens of the whole input", "tokens", min=1)
    distance = count("tokens from the name's last piece to the last token", "tokens")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    head = count("head", "head")
    attention_to_name = prob("weight of the last token on the name's pieces; empty for Mamba2", nullable=True)
    state_retention = prob(
        "share of what the name's last piece wrote into the state that the decay leaves; empty for attention",
        nullable=True,
    )


class Patching(Table):
    """Interchange between two prompts that differ in one name: one site, layer and position at a time."""

    prompt = text("prompt that is run")
    source_prompt = text("prompt that the value put in place comes from")
    site = text("`resid_pre`, `mixer_out`, `ffn_out`, or `ssm_state` (the state after the position)")
    mixer = text("`attention` or `mamba2`: the layer's mixer")
    layer = count("layer", "layer")
    position = count("position in the input", "position")
    token = text("the prompt's token at the position")
    recovered = number(
        "(changed - prompt) / (source - prompt) of the logit difference: 0 changes nothing, 1 is the other prompt",
        "share",
    )


class Attribution(Table):
    """Direct logit attribution: what each part adds to the logits of the target and of a rival."""

    prompt = text("prompt name")
    layer = count("layer; 0 for `embed`, the number of layers for `final_norm_bias`", "layer")
    site = text("`embed`, `z` (one head, through the output projection), `mixer_bias`, `ffn_out`, `final_norm_bias`")
    head = count("head for `z`; empty otherwise", "head", nullable=True)
    mixer = text("`attention` or `mamba2` for `z` and `mixer_bias`; empty otherwise")
    target_token = text("the target")
    rival_token = text("the most likely other token")
    target_logit_contribution = number("added to the target's logit", "logit")
    rival_logit_contribution = number("added to the rival's logit", "logit")


class Mixing(Table):
    """Who takes how much from whom: attention weights, and Mamba2 unrolled to the same shape."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    head = count("head", "head")
    query_position = count("position that takes", "position")
    key_position = count("position that is taken from, at most query_position", "position")
    weight = number("weight; attention's rows sum to 1, Mamba2's do not and may be negative", "weight")


class AttentionRows(Table):
    """Every attention head's last row in a few numbers."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    head = count("head", "head")
    argmax_position = count("position with the largest weight", "position")
    argmax_token = text("its token")
    argmax_weight = prob("its weight")
    entropy_bits = number("entropy of the row", "bits", min=-1e-6)
    weight_on_first = prob("weight on the first token")


class Sink(Table):
    """Is position 0 needed for its value, for the normalisation, or for the token that stands there?"""

    prompt = text("prompt name")
    intervention = text(
        "`none`; `mask` (no query but the first sees position 0); `drop_value` (weights kept, its value zeroed); "
        "`renormalise` (value kept, the other weights scaled up as the mask would); `replace_token`"
    )
    layer = count("attention layer", "layer")
    weight_on_first = prob("weight on position 0 before any edit, mean over heads and over the queries after it")
    last_weight_on_first = prob("the same for the last query alone")
    kl = number(
        "KL(clean || changed) at the last position; the same for all layers of an intervention", "nats", min=-1e-6
    )
    target_probability = prob("probability of the target under the intervention")
    target_rank = count("rank of the target under the intervention", "rank")
    top1_token = text("most likely token under the intervention")
    top1_probability = prob("its probability")


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
    """One layer of each kind rebuilt from its cells, step by step, and held against the frame's own pass."""

    prompt = text("prompt name")
    layer = count("layer", "layer")
    mixer = text("`attention` or `mamba2`", regex="^(attention|mamba2)$")
    order = count("place of the step", "step")
    step = text("what the step makes")
    site = text("site of the frame's pass that must hold the same tensor; empty if it has none")
    shape = text("shape, for example `1x18x576`")
    l2_norm = number("Euclidean length at the last position", "activation", min=0.0)
    rms = number("root mean square at the last position", "activation", min=0.0)
    mean = number("mean at the last position", "activation")
    deviation = number("population standard deviation at the last position", "activation", min=0.0)
    max_abs_diff = number("largest |rebuilt - frame| over the tensor; empty without a site", min=0.0, nullable=True)


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


class CacheSteps(Table):
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


TIMED_KINDS = "^(decode|batch|prefill|matrix_peak|read_bandwidth)$"
TIMING_STATUS = "^(ok|skipped)$"


class Timed(Table):
    """What was timed: the columns that `timing` and its summary share."""

    implementation = text(
        "`tokentrail`, `transformers eager`, `transformers sdpa`, or `machine` for what it can do at best"
    )
    kind = text(
        "`decode` (one row), `batch` (several rows), `prefill`; `matrix_peak` and `read_bandwidth` are the machine's "
        "limits, measured in the same rounds",
        regex=TIMED_KINDS,
    )
    context = count("tokens in the cache before the first step; for `prefill`, tokens of the input; 0 for limits")
    batch = count("rows; 0 for limits", "rows")


class Timing(Timed):
    """Wall-clock times, in shuffled order. This table and those made from it are the only ones that two runs may
    differ in."""

    block = count("0 for the first block of rounds, 1 for the repetition at the end", "block", max=1)
    round = count("round within the block", "round")
    place = count("place in the shuffled order of the round", "place")
    calls = count("decode steps, or passes, that `seconds` spans", "calls")
    seconds = number("wall time of the calls together; empty if skipped", "s", min=0.0, nullable=True)
    operations = number(
        "multiplications and additions in the matrix products and attention of one call: what the model needs, not "
        "what a profiler counted",
        "operations",
        min=0.0,
    )
    parameter_bytes = count("bytes of all parameters in the format that they are run in; 0 for limits", "bytes")
    least_bytes = count(
        "bytes that one call cannot do without reading once: every weight but the table rows that are not looked up, "
        "and the keys, values and states of the context; not measured traffic",
        "bytes",
    )
    threads = count("threads that torch used", "threads", min=1)
    status = text("`ok`, or `skipped`", regex=TIMING_STATUS)
    reason = text("why it was skipped; empty if it was not")


class TimingSummary(Timed):
    """Median and percentiles of the rounds, beside the limits that the same process measured."""

    rounds = count("rounds of the first block, which the median and percentiles are over", "rounds")
    median_ms = number("median time of one call: a decode step, or a prefill", "ms", min=0.0, nullable=True)
    p10_ms = number("10th percentile", "ms", min=0.0, nullable=True)
    p90_ms = number("90th percentile", "ms", min=0.0, nullable=True)
    repeat_median_ms = number("median of the block at the end", "ms", min=0.0, nullable=True)
    drift = number("repeat_median_ms / median_ms - 1", "share", nullable=True)
    tokens_per_second = number("tokens of all rows together, at the median", "tokens/s", min=0.0, nullable=True)
    parameter_bytes_per_second = number(
        "tokens_per_second times parameter_bytes: a normalisation, not traffic, as one read of a weight serves all "
        "rows and tokens of a call",
        "bytes/s",
        min=0.0,
        nullable=True,
    )
    least_bytes_per_second = number("least_bytes of the calls over their time", "bytes/s", min=0.0, nullable=True)
    achieved_flops = number("operations over the median time", "operations/s", min=0.0, nullable=True)
    intensity = number("operations / least_bytes", "operations/byte", min=0.0, nullable=True)
    matrix_peak = number("float32 matrix product, the best of the process", "operations/s", min=0.0)
    read_bandwidth = number("reading a large array, the best of the process", "bytes/s", min=0.0)
    fraction_of_peak = number("achieved_flops / matrix_peak", "share", min=0.0, nullable=True)
    fraction_of_bandwidth = number(
        "least_bytes_per_second / read_bandwidth; above 1 for a model that fits a cache of the processor",
        "share",
        min=0.0,
        nullable=True,
    )
    threads = count("threads that torch used", "threads", min=1)
    status = text("`ok`, or `skipped`", regex=TIMING_STATUS)
    reason = text("why it was skipped; empty if it was not")


class Machine(Table):
    """The machine that the times are of."""

    fact = text("name of the fact")
    value = text("its value, with its unit")


class Cost(Table):
    """The price and the wait: what a million tokens cost at an assumed price of the machine."""

    kind = text("`decode`, `batch` or `prefill`, as timed", regex="^(decode|batch|prefill)$")
    context = count("tokens in the cache, or of the input", "tokens", min=1)
    batch = count("rows", "rows", min=1)
    price_per_hour = number("assumed price of the machine", "dollars/hour", min=0.0)
    occupancy = prob("assumed share of the paid time in which the machine works")
    tokens_per_second = number("tokens of all rows together while it works", "tokens/s", min=0.0)
    dollars_per_million_tokens = number(
        "price_per_hour 10^6 / (3600 occupancy tokens_per_second): machine time alone", "dollars", min=0.0
    )
    step_latency_ms = number("median time of one call, which every row waits for", "ms", min=0.0)


class QuantizationQuality(Table):
    """What a scheme costs in answers and saves in bytes: one row for each scheme, choice of weights and passage."""

    scheme = text("name of the scheme in the configuration; `float32` and `bfloat16` for the unquantized model")
    detail = text("the scheme in words; empty for the unquantized model")
    method = text(
        "`plain`: one scale that covers each group; or what is done beyond it, `asymmetric`, `searched scales`, "
        "`outliers apart`, joined by commas; empty for the unquantized model"
    )
    bits = count("bits of a code; empty for the unquantized model", "bits", nullable=True)
    group_size = count("weights that share a scale; empty for one scale a row, and without codes", nullable=True)
    families = text("weights that are quantized: `all`, `compute`, or parts of the model; empty if none are")
    execution = text(
        "`unquantized`; `simulated` (rounded, read back, run in float32); or `packed` (codes stored, and a kernel "
        "that reads codes and scales)",
        regex="^(unquantized|simulated|packed)$",
    )
    payload_bytes = count("bytes of the whole model by the formula", "bytes")
    stored_bytes = count("bytes of the packed file; empty unless packed", "bytes", nullable=True)
    compression = number("float32 payload / payload", "ratio", min=0.0)
    prompt = text("prompt name")
    kl = number("KL(float32 || this row) at the prompt's last position", "nats", min=-1e-6)
    top1_token = text("most likely token after the prompt")
    top1_probability = prob("its probability")
    target_probability = prob("probability of the prompt's target")
    target_rank = count("rank of the target", "rank")
    passage = text("passage name; empty if none is configured")
    positions = count("predicted positions of the passage", "positions", nullable=True)
    bos_policy = text("`added` before each window of the passage, `tokenizer has none` or `tokenizer does not add it`")
    perplexity = number("exp of the mean negative log probability of the passage's tokens", "", min=1.0, nullable=True)
    perplexity_low = number("lower end of its interval, over positions", "", min=1.0, nullable=True)
    perplexity_high = number("upper end", "", min=1.0, nullable=True)
    mean_kl = number("KL(float32 || this row), mean over the passage's positions", "nats", min=-1e-6, nullable=True)
    mean_kl_low = number("lower end of its interval, over positions", "nats", min=-1e-6, nullable=True)
    mean_kl_high = number("upper end", "nats", min=-1e-6, nullable=True)
    top1_agreement = prob("share of the passage's positions with the same most likely token as float32", nullable=True)
    top1_agreement_low = prob("lower end of its interval, over positions", nullable=True)
    top1_agreement_high = prob("upper end", nullable=True)
    level = prob("level of the intervals")
    parity_float32 = number(
        "packed rows: largest |packed - simulated| logit after the prompt's first token, the kernels run in float32; "
        "the same bytes must give the same logits",
        "logit",
        min=0.0,
        nullable=True,
    )
    parity_bfloat16 = number(
        "packed rows: the same at all positions of the prompt with bfloat16 activations, as the model runs",
        "logit",
        min=0.0,
        nullable=True,
    )
    note = text("why a packed row that was asked for is not there; empty otherwise")


class QuantizationTiming(Table):
    """Decode and prefill of the packed schemes beside the unquantized model, timed in the same rounds."""

    scheme = text("name of the scheme; `float32` and `bfloat16` for the unquantized model")
    families = text("weights that are quantized; empty if none are")
    resident_bytes = count("what the process grew by when the model was loaded and had read one token", "bytes")
    context = count("tokens in the cache before decoding", "tokens", min=1)
    decode_ms = number("median time of one decode step of one row", "ms", min=0.0)
    decode_p10_ms = number("10th percentile", "ms", min=0.0)
    decode_p90_ms = number("90th percentile", "ms", min=0.0)
    prefill_tokens = count("tokens of the prefill", "tokens", min=1)
    prefill_ms = number("median time of one prefill", "ms", min=0.0)
    prefill_p10_ms = number("10th percentile", "ms", min=0.0)
    prefill_p90_ms = number("90th percentile", "ms", min=0.0)
    rounds = count("rounds, each in a shuffled order", "rounds", min=1)
    threads = count("threads of torch", "threads", min=1)


class Quantization(QuantizationQuality):
    """Bytes, answers and times of every scheme: `quantization_quality` with `quantization_timing` beside it."""

    resident_bytes = count("what loading the model grows a process by; empty for simulated rows", nullable=True)
    decode_ms = number("median time of one decode step of one row; empty for simulated rows", "ms", nullable=True)
    prefill_ms = number("median time of one prefill; empty for simulated rows", "ms", nullable=True)


class QuantizationErrors(Table):
    """The weights' side of quantization: how far each matrix moves, and how its weights are spread."""

    scheme = text("name of the scheme in the configuration")
    tensor = text("matrix, as the forward pass names it")
    shape = text("its shape (out x in), for example `1536x576`")
    bits = count("bits of a code", "bits")
    group_size = count("weights that share a scale; empty for one scale a row", nullable=True)
    mean_abs_error = number("mean |read back - original|", "weight", min=0.0)
    std = number("standard deviation of the original weights", "weight", min=0.0)
    relative_error = number("mean_abs_error / std", "ratio", min=0.0)
    max_abs = number("largest |weight|", "weight", min=0.0)
    max_sigma = number("max_abs / std", "sigma", min=0.0)
    beyond_4_sigma = prob("share of weights with |weight| > 4 std")
    groups = count("groups, each with a scale", "groups", min=1)
    groups_with_outlier = count("groups that hold a weight beyond 4 std", "groups")
    first_scale = number("scale of the first group", "weight", min=0.0)
    first_weights = text("the first six weights of the matrix, as the checkpoint stores it")
    first_codes = text("their codes")


TABLES: dict[str, type[Table]] = {
    "weights": Weights,
    "cells": Cells,
    "census": Census,
    "tokens": Tokens,
    "parity": Parity,
    "parity_layers": ParityLayers,
    "next_token": NextToken,
    "distribution": Distribution,
    "name_swaps": NameSwaps,
    "name_swaps_summary": NameSwapsSummary,
    "reproduction": Reproduction,
    "lens": Lens,
    "residual": Residual,
    "ablations": Ablations,
    "filler_sweep": FillerSweep,
    "long_range": LongRange,
    "patching": Patching,
    "attribution": Attribution,
    "mixing": Mixing,
    "attention": AttentionRows,
    "sink": Sink,
    "cache": CacheSteps,
    "timing": Timing,
    "timing_summary": TimingSummary,
    "machine": Machine,
    "cost": Cost,
    "quantization_quality": QuantizationQuality,
    "quantization_timing": QuantizationTiming,
    "quantization": Quantization,
    "quantization_error": QuantizationErrors,
    "merges": Merges,
    "geometry": Geometry,
    "positions": Positions,
    "block": Block,
    "mlp": Mlp,
    "arithmetic": Arithmetic,
}

TIMED = ("timing", "timing_summary", "machine", "cost", "quantization_timing", "quantization")
"""The tables that hold or come from wall-clock times: the only ones in which two runs of one input may differ."""


class Training(Table):
    """The training of a reference model, in windows of equal numbers of steps."""

    step = count("last step of the window", "step", min=1)
    tokens = count("tokens read up to and with this step", "tokens")
    loss = number("mean cross-entropy of the next token in the window, with mixers dropped", "nats", min=0.0)
    answer_loss = number("the same of the tokens that belong to an answer", "nats", min=0.0)


class Evaluation(Table):
    """How well a reference model copies a name: wording and filler that it never saw."""

    names = text("`seen` in training, or `held_out` of it", regex="^(seen|held_out)$")
    name = text("the name that is asked for")
    pieces = count("pieces that the name is cut into", "tokens", min=1)
    filler = text("paragraph between head and tail")
    repeats = count("how often the paragraph stands there", min=0)
    tokens = count("length of the prompt", "tokens")
    distance = count("from the name's last piece to the last token", "tokens")
    variant = text("`as_trained`, or `attention_off`: nothing from any attention head")
    target_probability = prob("probability of the name's first piece")
    target_rank = count("its rank", "rank")
    top1_token = text("most probable token")


# Tables of the reference models, which no run makes: their own rules do.
REFERENCE_TABLES: dict[str, type[Table]] = {"training": Training, "evaluation": Evaluation}


def schema_of(table: str) -> type[Table]:
    return (TABLES | REFERENCE_TABLES)[table]


def frame(table: str, rows: list[dict], **same) -> pl.DataFrame:
    """Rows as a frame with the columns of `table`, those of `same` filled in alike; also when there are no rows."""
    if not rows:
        return schema_of(table).create_empty()
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        **{key: pl.lit(value) for key, value in same.items()}
    )


@contextlib.contextmanager
def atomic_path(path: Path):
    """A temporary path beside `path` that becomes `path` when the block ends without an error.

    Leftovers of a killed writer of the same path are removed first.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        leftover.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write(table: str, frame: pl.DataFrame, path: Path, weights_sha256: str = "") -> None:
    """Check `frame` against the schema of `table` and put it at `path`, whole or not at all.

    Raises TableError if a column is missing, unknown or holds values outside its declared range; NaN and
    infinities are never valid.
    """
    schema = schema_of(table)
    expected = list(schema.column_names())
    if set(frame.columns) != set(expected):
        difference = sorted(set(frame.columns) ^ set(expected))
        raise TableError(f"table {table}: the columns {difference} are in the frame or in the schema, but not in both")
    try:
        checked = schema.validate(frame.select(expected), cast=True)
    except Exception as error:
        raise TableError(f"table {table} does not fit its schema: {error}") from error
    metadata = {
        "schema": f"tokentrail.{table}",
        "schema_version": SCHEMA_VERSION,
        "weights_sha256": weights_sha256,
    }
    with atomic_path(path) as part:
        checked.write_parquet(part, compression="zstd", metadata=metadata)


def read(table: str, path: Path) -> pl.DataFrame:
    """The table at `path`, checked against the schema of `table`.

    Raises TableError if the file is missing, is not Parquet, or has other columns than the schema.
    """
    path = Path(path)
    if not path.is_file():
        raise TableError(f"table {table} is missing at {path}; run snakemake to make it")
    try:
        frame = pl.read_parquet(path)
        return schema_of(table).validate(frame)
    except Exception as error:
        raise TableError(
            f"table {table} at {path} is damaged or was made by another version; delete it and run snakemake again"
        ) from error
