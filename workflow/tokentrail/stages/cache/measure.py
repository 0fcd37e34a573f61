"""Decode with a cache against full recomputation, ours and transformers', and the bytes that the cache holds."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor, nn

from tokentrail import tables
from tokentrail.errors import PromptError
from tokentrail.forward.cache import Cache, formula_bytes, held_bytes, new_cache
from tokentrail.forward.frame import Model, forward, last
from tokentrail.measure.asked import asked
from tokentrail.measure.prompts import Encoded, encoded
from tokentrail.measure.reference import cached_logits, open_reference, reference_logits
from tokentrail.weights.load import Loaded, load_model

THEIRS = (
    "reference_max_abs_logit_diff",
    "reference_mean_abs_logit_diff",
    "reference_top1_agrees",
    "max_abs_error_reference",
)
"""What is measured of transformers' cached pass; empty where it keeps no cache of the model."""


class Said(NamedTuple):
    """Logits (tokens, vocabulary) for the same tokens of one row, by our pass and by transformers'."""

    ours: Tensor
    reference: Tensor | None  # None where transformers keeps no cache


@dataclass(frozen=True)
class Models:
    ours: Model
    reference: nn.Module

    def full(self, ids: Tensor) -> Said:
        """One pass over all of ids (1, tokens), without a cache."""
        return Said(forward(self.ours, ids)[0], reference_logits(self.reference, ids)[0])


@dataclass(frozen=True)
class Continued:
    """A prompt with the tokens that greedy decoding puts after it."""

    prompt: Encoded
    ids: Tensor  # (1, tokens of the prompt + steps)
    truth: Tensor  # (tokens of the prompt + steps, vocabulary): their logits in one float64 pass


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `cache`. A prompt whose continuation the model has no positions for has a row with the reason."""
    steps = settings["steps"]
    encodable, refused = encoded(loaded, settings)
    prompts = []
    for prompt in encodable:
        with asked(refused, prompt=prompt.name):
            check_continuation(loaded, prompt, steps)
            prompts.append(prompt)
    models = Models(loaded.model, open_reference(loaded.checkpoint, loaded.device))
    truth = load_model(loaded.checkpoint, torch.float64, loaded.device)
    continued = []
    for prompt in prompts:
        ids = greedy(loaded.model, prompt.ids, steps)
        continued.append(Continued(prompt, ids, forward(truth, ids)[0]))

    rows = [row for each in continued for row in alone(models, each, steps, settings["pieces"])]
    if len(continued) > 1:
        rows += batch(models, continued, steps)
    rows = [row | {"token": loaded.tokenizer.token(row.pop("token_id"))} for row in rows]
    return tables.frame("cache", rows, refused, model=settings["model"])


def check_continuation(loaded: Loaded, prompt: Encoded, steps: int) -> None:
    tokens, room = prompt.ids.shape[1], loaded.model.spec.learned_positions
    if room is not None and tokens + steps > room:
        raise PromptError(
            f"prompt {prompt.name} has {tokens} tokens and stages.cache.steps is {steps}, but {loaded.tokenizer.model} "
            f"has {room} positions; shorten the prompt or lower stages.cache.steps"
        )


def greedy(model: Model, ids: Tensor, steps: int) -> Tensor:
    """ids (1, tokens) and the `steps` tokens that greedy decoding with a cache puts after them."""
    cache = new_cache(model.spec, 1, ids.shape[1] + steps, model.tokens.dtype, ids.device)
    token = ids
    for _ in range(steps):
        token = forward(model, token, cache, read=last(token)).argmax(dim=-1)  # (1, 1)
        ids = torch.cat([ids, token], dim=1)
    return ids


def schedules(tokens: int, steps: int, pieces: list[int]) -> list[tuple[str, int, list[int]]]:
    """kind, piece and the sizes of the calls, for a prompt of `tokens` tokens that `steps` more follow."""
    out = [("decode", 1, [tokens] + [1] * steps)]
    for piece in dict.fromkeys(min(piece, tokens) for piece in (*pieces, tokens)):
        rest = tokens % piece
        out.append(("chunked_prefill", piece, [piece] * (tokens // piece) + [rest] * (rest > 0)))
    return [*out, ("continuation", steps, [tokens, steps])]


def alone(models: Models, continued: Continued, steps: int, pieces: list[int]) -> list[dict[str, Any]]:
    """One prompt in a cache of its own, by every schedule."""
    full = functools.cache(lambda end: models.full(continued.ids[:, :end]))
    rows = []
    for kind, piece, sizes in schedules(continued.prompt.ids.shape[1], steps, pieces):
        calls = continued.ids[:, : sum(sizes)].split(sizes, dim=1)
        theirs = cached_logits(models.reference, calls)
        start = 0
        for step, (call, ours, cache) in enumerate(in_calls(models.ours, calls, sum(sizes))):
            end = start + call.shape[1]
            # A decoder without a cache computes everything anew at each step; one pass serves the other schedules.
            whole = full(end if kind == "decode" else sum(sizes))
            rows.append(
                {"prompt": continued.prompt.name, "kind": kind, "piece": piece, "step": step}
                | {"token_id": int(call[0, -1]), "tokens": call.shape[1]}
                | apart(
                    Said(ours[0], None if theirs is None else theirs[step][0]),
                    Said(whole.ours[start:end], whole.reference[start:end]),
                    continued.truth[start:end],
                )
                | sizes_of(models.ours, cache, row=0)
            )
            start = end
    return rows


def batch(models: Models, continued: list[Continued], steps: int) -> list[dict[str, Any]]:
    """All prompts as the rows of one batch, and then their continuations token by token: each row's last token."""
    prompts = [each.prompt.ids[0] for each in continued]
    first = nn.utils.rnn.pad_sequence(prompts, batch_first=True)  # (rows, longest)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=first.device)
    rest = torch.cat([each.ids[:, -steps:] for each in continued])  # (rows, steps)
    calls = (first, *rest.split(1, dim=1))
    theirs = cached_logits(models.reference, calls, lengths)
    rows = []
    for step, (call, ours, cache) in enumerate(in_calls(models.ours, calls, first.shape[1] + steps, lengths)):
        ends = last(call, lengths if step == 0 else None)[:, 0].tolist()
        for row, (each, at) in enumerate(zip(continued, ends, strict=True)):
            end = int(cache.lengths[row])
            whole = models.full(each.ids[:, :end])
            rows.append(
                {"prompt": each.prompt.name, "kind": "batch", "piece": 1, "step": step}
                | {"token_id": int(call[row, at]), "tokens": end if step == 0 else 1}
                | apart(
                    Said(ours[row, at : at + 1], None if theirs is None else theirs[step][row, -1:]),
                    Said(whole.ours[-1:], whole.reference[-1:]),
                    each.truth[end - 1 : end],
                )
                | sizes_of(models.ours, cache, row)
            )
    return rows


def in_calls(model: Model, calls: tuple[Tensor, ...], capacity: int, lengths: Tensor | None = None):
    """Each call's ids, its logits (rows, tokens, vocabulary), and the cache after it; `lengths` pads the first."""
    cache = new_cache(model.spec, calls[0].shape[0], capacity, model.tokens.dtype, calls[0].device)
    for step, call in enumerate(calls):
        yield call, forward(model, call, cache, lengths if step == 0 else None), cache


def apart(cached: Said, full: Said, truth: Tensor) -> dict[str, Any]:
    """How far cached logits (tokens, vocabulary) are from full recomputation, and all of them from the truth."""
    ours = (cached.ours - full.ours).abs()
    found = {
        "max_abs_logit_diff": ours.max().item(),
        "mean_abs_logit_diff": ours.double().mean().item(),
        "top1_agrees": bool((cached.ours.argmax(-1) == full.ours.argmax(-1)).all()),
        "max_abs_error_ours": (cached.ours - truth).abs().max().item(),
        "max_abs_error_ours_full": (full.ours - truth).abs().max().item(),
        "max_abs_error_reference_full": (full.reference - truth).abs().max().item(),
    }
    if cached.reference is None:
        return found | dict.fromkeys(THEIRS)
    theirs = (cached.reference - full.reference).abs()
    agrees = bool((cached.reference.argmax(-1) == full.reference.argmax(-1)).all())
    error = (cached.reference - truth).abs().max().item()
    said = (theirs.max().item(), theirs.double().mean().item(), agrees, error)
    return found | dict(zip(THEIRS, said, strict=True))


def sizes_of(model: Model, cache: Cache, row: int) -> dict[str, int]:
    held, tokens = held_bytes(cache, row), int(cache.lengths[row])
    itemsize = model.tokens.element_size()
    return {
        "cache_tokens": tokens,
        "kv_bytes": held.kv,
        "conv_bytes": held.conv,
        "state_bytes": held.state,
        "formula_bytes": formula_bytes(model.spec, tokens, itemsize).total,
        "reserved_bytes": formula_bytes(model.spec, cache.capacity, itemsize).total,
    }
