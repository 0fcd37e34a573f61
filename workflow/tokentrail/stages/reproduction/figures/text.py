"""Figures of the text: tokens, merges, lengths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run

FILLER = "town"
"""The filler of the published sweep."""
NAME_PROMPT = "alice"


def pieces(run: Run, model: str, text: str) -> list[tuple[int, str]]:
    """The ids and texts of a prompt's tokens, or of a word's as its merges end."""
    tokens = run.rows("tokens", model)
    if text in set(tokens["prompt"]):
        return [*tokens.filter(pl.col("prompt") == text, ~pl.col("special")).select("token_id", "token").iter_rows()]
    ends = merges(run, model, text).filter(pl.col("token_ids") != "")
    return [
        (int(i), symbol.replace("Ġ", " "))
        for symbols, ids in ends.select("symbols", "token_ids").iter_rows()
        for i, symbol in zip(ids.split(" "), symbols.split(" "), strict=True)
    ]


def merges(run: Run, model: str, word: str) -> pl.DataFrame:
    return run.rows("merges", model, prompt=word)


def steps(run: Run, figure: Figure) -> pl.DataFrame:
    """The merges of a word of one piece, one row a step."""
    rows = merges(run, figure.model, figure.input)
    if rows["piece"].n_unique() > 1:
        raise NotRun(f"{figure.input!r} is cut into several pieces before it is merged")
    return rows.sort("step")


def step(run: Run, figure: Figure, number: str) -> dict[str, Any]:
    rows = steps(run, figure).filter(pl.col("step") == int(number))
    if rows.is_empty():
        raise NotRun(f"{figure.input!r} is whole before merge {number}")
    return rows.row(0, named=True)


def name_position(run: Run, model: str) -> int:
    name = run.targets.get(NAME_PROMPT)
    found = [at for at, (_, token) in enumerate(pieces(run, model, NAME_PROMPT)) if token == name]
    if len(found) != 1:
        raise NotRun(f"the target of {NAME_PROMPT} is not one token of it in {model}")
    return found[0]


def length(run: Run, figure: Figure) -> int:
    """Tokens of a prompt, a word, or `filler-4`: the sweep's input with four fillers."""
    head, _, repeats = figure.input.partition("-")
    if head == "filler" and repeats.isdigit():
        return filler_length(run, figure.model, int(repeats))
    return len(pieces(run, figure.model, figure.input))


def filler_length(run: Run, model: str, repeats: int) -> int:
    return run.rows("filler_sweep", model, filler=FILLER, repeats=repeats)["tokens"][0]


def alike(values: Iterable[Any]) -> Any:
    """The value that all models share, or the list of theirs."""
    values = list(values)
    return values[0] if len(set(values)) == 1 else values


def repeats_of(run: Run) -> list[int]:
    sweeps = run.rows("filler_sweep", run.models[0], filler=FILLER)
    return sweeps["repeats"].unique().sort().to_list()


def at(run: Run, figure: Figure, position: str) -> str:
    tokens = pieces(run, figure.model, figure.input)
    if int(position) >= len(tokens):
        raise NotRun(f"{figure.input} has {len(tokens)} tokens in {figure.model}")
    return tokens[int(position)][1]


def inserted(run: Run, repeats: int) -> Any:
    return alike(filler_length(run, model, repeats) - filler_length(run, model, 0) for model in run.models)


def same_length_everywhere(run: Run, figure: Figure) -> bool:
    return all(len({filler_length(run, m, n) for m in run.models}) == 1 for n in repeats_of(run))


def fits(run: Run, figure: Figure) -> bool:
    repeats = int(figure.input.partition("-")[2])
    return run.rows("filler_sweep", figure.model, filler=FILLER, repeats=repeats)["status"][0] == "ok"


FIGURES = {
    r"token_count": length,
    r"token_ids": lambda run, f: [i for i, _ in pieces(run, f.model, f.input)],
    r"token_id|embedding_row_index": lambda run, f: alike([i for i, _ in pieces(run, f.model, f.input)]),
    r"token_split": lambda run, f: [token for _, token in pieces(run, f.model, f.input)],
    r"token_at_position_(\d+)": at,
    r"last_position|position_row_added_to_last_token": lambda run, f: length(run, f) - 1,
    r"position_of_name_token": lambda run, f: name_position(run, f.model),
    r"positions_between_name_and_last_token": lambda run, f: alike(
        len(pieces(run, m, NAME_PROMPT)) - 1 - name_position(run, m) for m in run.models
    ),
    r"ablation_input_token_count": lambda run, f: alike(len(pieces(run, m, NAME_PROMPT)) for m in run.models),
    r"fits_position_table": fits,
    r"filler_repeat_counts": lambda run, f: repeats_of(run),
    r"tokens_per_filler_paragraph": lambda run, f: inserted(run, 1),
    r"inserted_token_count": lambda run, f: inserted(run, 16),
    r"total_token_count_equal_in_three_tokenizers": same_length_everywhere,
    r"utf8_byte_count": lambda run, f: merges(run, f.model, f.input)["bytes"][0],
    r"leading_space_marker": lambda run, f: merges(run, f.model, " France")["symbols"][0].split(" ")[0],
    r"bpe_initial_symbols": lambda run, f: step(run, f, "0")["symbols"].split(" "),
    r"bpe_merge_step_count": lambda run, f: steps(run, f)["step"].max(),
    r"bpe_merge_rank_step_(\d+)": lambda run, f, n: step(run, f, n)["rank"],
    r"bpe_merge_pair_step_(\d+)": lambda run, f, n: [step(run, f, n)["left"], step(run, f, n)["right"]],
    r"bpe_symbols_after_step_(\d+)": lambda run, f, n: step(run, f, n)["symbols"].split(" "),
    # The stage raises unless the replay ends in the tokenizer's own ids, with no merge left.
    r"ranked_merges_left_after_last_step": lambda run, f: steps(run, f).filter(pl.col("token_ids") != "").height - 1,
}
