"""Figures of depth: the lens after each layer, the stream, the norms, the FFN."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run

BLOCK_SITES = {
    "initial_residual": "resid_pre",
    "attention_update": "mixer_out",
    "after_attention": "resid_mid",
    "mlp_update": "ffn_out",
    "block_output": "resid_post",
}
LENS_COLUMNS = {
    "top1_token": "top1_token",
    "top1_probability": "top1_probability",
    "target_rank_zero_based": "target_rank",
    "target_probability": "target_probability",
}
NEVER = -1
"""The layer of what never happens."""


def lens(run: Run, figure: Figure, variant: str = "as_trained") -> pl.DataFrame:
    """The lens after each whole layer, in order."""
    return run.rows("lens", figure.model, prompt=figure.input, variant=variant, site="resid_post").sort("layer")


def after(run: Run, figure: Figure, quantity: str, layer: str) -> Any:
    rows = lens(run, figure).filter(pl.col("layer") == int(layer))
    if rows.is_empty():
        raise NotRun(f"{figure.model} has no layer {layer}")
    return rows[LENS_COLUMNS[quantity]][0]


def first_leading(run: Run, figure: Figure, off: str | None = None) -> int:
    leading = lens(run, figure, "attention_off" if off else "as_trained").filter(pl.col("target_rank") == 0)
    return leading["layer"][0] if leading.height else NEVER


def best(run: Run, figure: Figure) -> dict[str, Any]:
    """The layer of the target's best rank; of several, the one where it is most probable."""
    rows = lens(run, figure).sort("target_rank", pl.col("target_probability").neg(), maintain_order=True)
    return rows.row(0, named=True)


def stream(run: Run, figure: Figure, site: str, layer: int | None = None) -> pl.DataFrame:
    rows = run.last("residual", figure.model, prompt=figure.input, site=site)
    if layer is not None:
        rows = rows.filter(pl.col("layer") == layer)
        if rows.is_empty():
            raise NotRun(f"{figure.model} has no layer {layer}")
    return rows


def normed(run: Run, figure: Figure) -> tuple[float, float]:
    """RMS and mean that the first norm makes of the last token before its weight, from what enters it."""
    entering, norm = stream(run, figure, "resid_pre", 0).row(0, named=True), run.spec(figure.model).norm
    rms, mean = entering["rms"], entering["mean"]
    if norm.kind == "rmsnorm":
        scale = 1 / math.sqrt(rms**2 + norm.eps)
        return rms * scale, mean * scale
    variance = rms**2 - mean**2
    return math.sqrt(variance / (variance + norm.eps)), 0.0


def ffn(run: Run, figure: Figure, column: str, layer: str) -> float:
    return run.last("mlp", figure.model, prompt=figure.input, layer=int(layer))[column][0]


def early_ranks(run: Run, figure: Figure, first: str, last: str) -> int:
    rows = lens(run, figure).filter(pl.col("layer").is_between(int(first), int(last)))
    return rows["target_rank"].min()


FIGURES = {
    r"first_layer_target_top1(_all_attention_off)?": first_leading,
    r"lens_(top1_token|top1_probability|target_rank_zero_based|target_probability)_layer_(\d+)": after,
    r"min_depth_fraction_of_first_target_layer": lambda run, f: first_leading(run, f) / len(run.spec(f.model).layers),
    r"min_lens_target_rank_layers_(\d+)_to_(\d+)": early_ranks,
    r"min_lens_rank_zero_based|lens_best_rank_zero_based": lambda run, f: best(run, f)["target_rank"],
    r"lens_best_layer": lambda run, f: best(run, f)["layer"],
    r"lens_best_layer_target_probability": lambda run, f: best(run, f)["target_probability"],
    r"best_layer_is_final_layer": lambda run, f: best(run, f)["layer"] == len(run.spec(f.model).layers) - 1,
    r"target_ever_top1_in_lens": lambda run, f: first_leading(run, f) != NEVER,
    r"layers_with_lens_rank_one_zero_based": lambda run, f: (
        lens(run, f).filter(pl.col("target_rank") == 1)["layer"].to_list()
    ),
    r"residual_norm_after_layer_(\d+)": lambda run, f, n: stream(run, f, "resid_post", int(n))["l2_norm"][0],
    r"max_residual_norm_over_layers": lambda run, f: stream(run, f, "resid_post")["l2_norm"].max(),
    r"norm_(initial_residual|attention_update|after_attention|mlp_update|block_output)_block_(\d+)": (
        lambda run, f, step, n: stream(run, f, BLOCK_SITES[step], int(n))["l2_norm"][0]
    ),
    r"rms_before_norm_layer_0": lambda run, f: stream(run, f, "resid_pre", 0)["rms"][0],
    r"rms_after_norm_layer_0": lambda run, f: normed(run, f)[0],
    r"mean_after_norm_layer_0": lambda run, f: normed(run, f)[1],
    r"fraction_abs_activation_below_0_01_layer_(\d+)": lambda run, f, n: ffn(run, f, "near_zero_fraction", n),
    r"fraction_negative_activation_layer_(\d+)": lambda run, f, n: ffn(run, f, "negative_fraction", n),
    r"max_activation_layer_(\d+)": lambda run, f, n: ffn(run, f, "max", n),
    r"min_activation_layer_(\d+)": lambda run, f, n: ffn(run, f, "min", n),
}
