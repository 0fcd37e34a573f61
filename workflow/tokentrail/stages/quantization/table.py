"""The tables `quantization_quality`, `quantization_timing`, `quantization` and `quantization_error`."""

from __future__ import annotations

from tokentrail.declare.columns import MEDIAN_LEVEL, MEDIAN_LOW, STATUS, Table, count, number, prob, text


class QuantizationQuality(Table):
    """What a scheme costs in answers and saves in bytes: one row for each scheme, choice of weights and passage.

    What was asked for and cannot be measured is a row with the status `skipped`: a passage that the float32 model
    cannot read, and a packed scheme that no kernel runs.
    """

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
    stored_dtypes = text(
        "number formats in which the source stores the weights that are quantized, most weights first; of the "
        "unquantized model, all its matrices"
    )
    weight_error = number(
        "mean |read back - original| of the weights that are quantized, in standard deviations of their matrix; empty "
        "if the scheme gives them no codes",
        "sigma",
        min=0.0,
        nullable=True,
    )
    on_codes = prob(
        "share of these weights in matrices that stood on the scheme's codes before, so that rounding moves them by "
        "at most 0.025 of a step, a tenth of what weights between two codes move by, and of their mean distance from "
        "their mean; a row with a large share shows nothing of what the bits cost; empty for float32, and without "
        "codes",
        nullable=True,
    )
    payload_bytes = count("bytes of the whole model by the formula", "bytes")
    stored_bytes = count("bytes of the packed file; empty unless packed", "bytes", nullable=True)
    compression = number("float32 payload / payload", "ratio", min=0.0)
    prompt = text("prompt name")
    kl = number(
        "KL(float32 || this row) at the prompt's last position; empty if skipped, as everything that is measured",
        "nats",
        min=-1e-6,
        nullable=True,
    )
    top1_token = text("most likely token after the prompt", nullable=True)
    top1_probability = prob("its probability", nullable=True)
    target_probability = prob("probability of the prompt's target", nullable=True)
    target_rank = count("rank of the target", "rank", nullable=True)
    passage = text("passage name; empty if none is configured or none can be read")
    positions = count("predicted positions of the passage", "positions", nullable=True)
    bos_policy = text("what is done about BOS before each window of the passage, in the words of table `tokens`")
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
    status = text("`ok`, or `skipped`", regex=STATUS)
    reason = text("why it was skipped; empty if it was not")

    @classmethod
    def asked(cls) -> list[str]:
        return ["scheme", "families", "execution", "passage"]


class QuantizationTiming(Table):
    """Decode and prefill of the packed schemes beside the unquantized model, timed in the same rounds."""

    scheme = text("name of the scheme; `float32` and `bfloat16` for the unquantized model")
    families = text("weights that are quantized; empty if none are")
    resident_bytes = count("what the process grew by when the model was loaded and had read one token", "bytes")
    context = count("tokens in the cache before decoding", "tokens", min=1)
    decode_ms = number("median time of one decode step of one row", "ms", min=0.0)
    decode_low_ms = number(MEDIAN_LOW, "ms", min=0.0)
    decode_high_ms = number("upper end", "ms", min=0.0)
    prefill_tokens = count("tokens of the prefill", "tokens", min=1)
    prefill_ms = number("median time of one prefill", "ms", min=0.0)
    prefill_low_ms = number("lower end of its interval, made in the same way", "ms", min=0.0)
    prefill_high_ms = number("upper end", "ms", min=0.0)
    level = prob(MEDIAN_LEVEL)
    rounds = count("rounds, each in a shuffled order", "rounds", min=1)
    threads = count("threads of torch", "threads", min=1)


class Quantization(QuantizationQuality):
    """Bytes, answers and times of every scheme: `quantization_quality` with `quantization_timing` beside it."""

    resident_bytes = count("what loading the model grows a process by; empty for simulated rows", nullable=True)
    decode_ms = number("median time of one decode step of one row; empty for simulated rows", "ms", nullable=True)
    decode_low_ms = number("lower end of its interval over the rounds", "ms", nullable=True)
    decode_high_ms = number("upper end", "ms", nullable=True)
    prefill_ms = number("median time of one prefill; empty for simulated rows", "ms", nullable=True)
    prefill_low_ms = number("lower end of its interval over the rounds", "ms", nullable=True)
    prefill_high_ms = number("upper end", "ms", nullable=True)

    @classmethod
    def asked(cls) -> list[str]:
        return []  # `quantization_quality` says it


class QuantizationError(Table):
    """The weights' side of quantization: how far each matrix moves, and how its weights are spread."""

    scheme = text("name of the scheme in the configuration")
    tensor = text("matrix, as the forward pass names it")
    shape = text("its shape (out x in), for example `1536x576`")
    bits = count("bits of a code", "bits")
    group_size = count("weights that share a scale; empty for one scale a row", nullable=True)
    mean_abs_error = number("mean |read back - original|", "weight", min=0.0, nullable=True)
    std = number("standard deviation of the original weights", "weight", min=0.0)
    relative_error = number("mean_abs_error / std", "ratio", min=0.0, nullable=True)
    max_abs = number("largest |weight|", "weight", min=0.0)
    max_sigma = number("max_abs / std", "sigma", min=0.0)
    beyond_4_sigma = prob("share of weights with |weight| > 4 std")
    groups = count("groups, each with a scale", "groups", min=1)
    groups_with_outlier = count("groups that hold a weight beyond 4 std", "groups")
    first_scale = number("scale of the first group", "weight", min=0.0, nullable=True)
    first_weights = text("the first six weights of the matrix, as the checkpoint stores it")
    first_codes = text("their codes; empty if there are none")
    status = text("`ok`, or `skipped`: the scheme gives this matrix no codes", regex=STATUS)
    reason = text("why it was skipped; empty if it was not")

    @classmethod
    def asked(cls) -> list[str]:
        return ["scheme", "tensor"]
