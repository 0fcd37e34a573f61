"""The tables `parity` and `parity_layers`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, flag, number, text


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
