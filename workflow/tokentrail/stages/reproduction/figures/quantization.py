"""Figures of quantization. Write-ups leave choices open, so every choice that was run is tried against all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run
from tokentrail.stages.reproduction.verdict import in_unit, judge

CHOICES = {"divisor": "largest_code", "grouping": "input"}
"""What a write-up may leave open, and what a scheme has where it says nothing."""
PLAIN = {"symmetric": True, "scale": "absmax", "outliers": 0.0}
COLUMNS = {
    "kl_nats": "kl",
    "top1_token": "top1_token",
    "top1_probability": "top1_probability",
    "probability_of_paris": "target_probability",
    "perplexity": "perplexity",
    "mean_kl_nats": "mean_kl",
    "top1_agreement": "top1_agreement",
}
PARTS = {
    "attn_c_attn": "attention.qkv",
    "attn_c_proj": "attention.out",
    "mlp_c_fc": "ffn.up",
    "mlp_c_proj": "ffn.down",
    "wte": "tokens",
}
"""The checkpoint's names of GPT-2's matrices, and the parts of a scheme."""
COMPUTE = ("attn_c_attn", "attn_c_proj", "mlp_c_fc", "mlp_c_proj")
CAREFUL = {"bits": 4, "group_size": 32, "weights": ["compute"]}
FIRST_MATRIX = "layers.0.ffn.up.weight"
CASES = {
    "fp32": None,
    "8_bit_all_large_group_64": {"bits": 8, "group_size": 64, "weights": ["all"]},
    "4_bit_all_large_group_64": {"bits": 4, "group_size": 64, "weights": ["all"]},
    "4_bit_compute_fp32_embeddings_group_32": CAREFUL,
}

Choice = tuple[str, str]


def choice_of(scheme: dict[str, Any]) -> Choice:
    return tuple(scheme.get(key, default) for key, default in CHOICES.items())


def names(run: Run, choice: Choice, **asked: Any) -> list[str]:
    """The plain schemes that are what is asked, with this choice of what is left open."""
    found = []
    for name, scheme in run.schemes.items():
        plain = all(scheme.get(key, default) == default for key, default in PLAIN.items())
        if plain and choice_of(scheme) == choice and all(scheme.get(key) == value for key, value in asked.items()):
            found.append(name)
    return found


def simulated(run: Run, figure: Figure, choice: Choice, families: str | None = None, **asked: Any) -> dict[str, Any]:
    """The row of the scheme that is what is asked. Raises NotRun if no scheme of the run is."""
    asked = {"one_at_a_time": families is not None} | asked
    for name in names(run, choice, **asked):
        rows = run.rows("quantization", figure.model, scheme=name, execution="simulated")
        rows = rows if families is None else rows.filter(pl.col("families") == families)
        for row in rows.head(1).to_dicts():
            if row["status"] == "skipped":
                raise NotRun(row["reason"])
            return row
    raise NotRun(f"stages.quantization has no scheme of {in_words(asked, choice)}")


def in_words(asked: dict[str, Any], choice: Choice) -> str:
    parts = [f"{value} bits" if key == "bits" else f"{key} {value}" for key, value in asked.items()]
    return ", ".join([*parts, *(f"{key} {value}" for key, value in zip(CHOICES, choice, strict=True))])


def grouped(run: Run, figure: Figure, choice: Choice, quantity: str, bits: str, group: str) -> Any:
    """`kl_nats_fp32_to_quant_4_bit_group_64`"""
    column = COLUMNS[quantity.removesuffix("_fp32_to_quant")]
    return simulated(run, figure, choice, bits=int(bits), group_size=int(group), weights=["all"])[column]


def four_bits(run: Run, figure: Figure, choice: Choice, place: str, column: str) -> Any:
    return nth(simulated(run, figure, choice, bits=4, group_size=64, weights=["all"]), place, column)


def careful(run: Run, figure: Figure, choice: Choice, place: str, column: str) -> Any:
    return nth(simulated(run, figure, choice, **CAREFUL), place, column)


def nth(row: dict[str, Any], place: str, column: str) -> Any:
    if place != "1":
        raise NotRun("quantization keeps the most likely token of a scheme alone")
    return row[f"top1_{column}"]


def family(run: Run, figure: Figure, choice: Choice, name: str) -> float:
    return simulated(run, figure, choice, PARTS[name], bits=4, group_size=64)["kl"]


def over_families(run: Run, figure: Figure, choice: Choice, which: str) -> float:
    found = [family(run, figure, choice, name) for name in COMPUTE]
    return min(found) if which == "min" else max(found)


def most_sensitive(run: Run, figure: Figure, choice: Choice) -> str:
    return max(PARTS, key=lambda name: family(run, figure, choice, name))


def first_change(run: Run, figure: Figure, choice: Choice) -> list[int]:
    """The last number of bits that keeps the most likely token, and the first that does not."""
    clean = run.row("next_token", figure.model, prompt=figure.input, rank=0)["token"]
    before = 8
    for bits in (8, 6, 4, 3, 2):
        if simulated(run, figure, choice, bits=bits, group_size=64, weights=["all"])["top1_token"] != clean:
            return [before, bits]
        before = bits
    raise NotRun("the most likely token is the same with every number of bits")


def error(run: Run, figure: Figure, choice: Choice) -> dict[str, Any]:
    """How the first FFN matrix fares with 4 bits in groups of 64."""
    for name in names(run, choice, bits=4, group_size=64):
        rows = run.tables.get("quantization_error", pl.DataFrame())
        if rows.height and name in set(rows["scheme"]):
            row = run.row("quantization_error", figure.model, scheme=name, tensor=FIRST_MATRIX)
            if row["status"] == "skipped":
                raise NotRun(row["reason"])
            return row
    raise NotRun(f"stages.quantization.errors names no scheme of 4 bits, group_size 64, {in_words({}, choice)}")


def number_at(printed: str, place: str) -> float:
    """One of the numbers that a cell of the table lists."""
    listed = printed.replace(",", " ").split()
    if int(place) >= len(listed):
        raise NotRun(f"quantization_error keeps {len(listed)} of the first weights")
    return float(listed[int(place)])


def on_passage(run: Run, figure: Figure, choice: Choice, quantity: str, case: str) -> float:
    column, asked = COLUMNS[quantity], CASES[case]
    if asked is None:
        rows = run.rows("quantization", figure.model, scheme="float32")
        row = rows.row(0, named=True)
    else:
        row = simulated(run, figure, choice, **asked)
    if row[column] is None:
        raise NotRun(not_read(run, figure))
    return row[column]


def not_read(run: Run, figure: Figure) -> str:
    """Why the model read no passage."""
    reasons = run.rows("quantization", figure.model, scheme="float32")["reason"].to_list()
    return "; ".join(filter(None, reasons)) or "stages.quantization.passages names no text"


CASE = f"({'|'.join(CASES)})"
OPEN = {
    r"(kl_nats_fp32_to_quant|top1_token|top1_probability|probability_of_paris)_(\d)_bit_group_(\d+)": grouped,
    r"four_bit_group_64_top(\d)_(token|probability)": four_bits,
    r"careful_4_bit_top(\d)_(token|probability)": careful,
    r"kl_nats_careful_4_bit_group_32": lambda run, f, choice: simulated(run, f, choice, **CAREFUL)["kl"],
    rf"kl_nats_only_({'|'.join(PARTS)})_4_bit": family,
    r"(min|max)_kl_nats_over_twelve_matrix_families": over_families,
    r"most_sensitive_family": most_sensitive,
    r"top1_first_changes_between_bits": first_change,
    r"mean_abs_reconstruction_error": lambda run, f, choice: error(run, f, choice)["mean_abs_error"],
    r"mean_abs_error_over_std": lambda run, f, choice: error(run, f, choice)["relative_error"],
    r"first_group_scale": lambda run, f, choice: error(run, f, choice)["first_scale"],
    r"four_bit_code_(\d)": lambda run, f, choice, n: number_at(error(run, f, choice)["first_codes"], n),
    rf"(perplexity|mean_kl_nats|top1_agreement)_{CASE}": on_passage,
}
"""Figures that depend on what the write-up leaves open: functions of the choice as well."""


def any_error(run: Run, figure: Figure) -> dict[str, Any]:
    """The first FFN matrix: what is said of the weights as they are is the same for every scheme."""
    return run.rows("quantization_error", figure.model, tensor=FIRST_MATRIX).row(0, named=True)


def choices(run: Run) -> list[Choice]:
    """The choices that the run's schemes make, in their order."""
    plain = [
        scheme
        for scheme in run.schemes.values()
        if all(scheme.get(key, default) == default for key, default in PLAIN.items())
    ]
    return list(dict.fromkeys(map(choice_of, plain)))


def default() -> Choice:
    return tuple(CHOICES.values())


def settled(select: Callable[..., Any]) -> Callable[..., Any]:
    """A selector of OPEN with the choice that was settled for the run."""
    return lambda run, figure, *groups: select(run, figure, run.choice.of if run.choice else default(), *groups)


def is_open(figure: Figure) -> bool:
    return any(re.fullmatch(pattern, figure.quantity) for pattern in OPEN)


def tally(run: Run, ledger: Iterable[Figure]) -> dict[Choice, int]:
    """How many of the open figures each choice that was run reproduces; empty if no scheme was."""
    counted = dict.fromkeys(choices(run), 0)
    for figure in ledger:
        for pattern, select in OPEN.items():
            if figure.tolerance_kind != "report" and (found := re.fullmatch(pattern, figure.quantity)):
                for choice in counted:
                    counted[choice] += reproduces(run, figure, select, choice, found.groups())
    return counted


def reproduces(run: Run, figure: Figure, select: Callable[..., Any], choice: Choice, groups: tuple[str, ...]) -> bool:
    try:
        return judge(figure, in_unit(figure, select(run, figure, choice, *groups))).agrees
    except NotRun:
        return False


FIGURES = {pattern: settled(select) for pattern, select in OPEN.items()} | {
    r"weight_shape": lambda run, f: [run.spec(f.model).width, run.spec(f.model).layers[0].ffn.width],
    r"weight_count": lambda run, f: run.spec(f.model).width * run.spec(f.model).layers[0].ffn.width,
    r"weight_standard_deviation": lambda run, f: any_error(run, f)["std"],
    r"max_abs_weight": lambda run, f: any_error(run, f)["max_abs"],
    r"max_abs_weight_over_std": lambda run, f: any_error(run, f)["max_sigma"],
    r"fraction_beyond_4_sigma": lambda run, f: any_error(run, f)["beyond_4_sigma"],
    r"weight_value_(\d)": lambda run, f, n: number_at(any_error(run, f)["first_weights"], n),
}
