"""The whole distribution of a position: as the model computes it, as decoding may use it, and what narrows it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import forward, last
from tokentrail.measure.answers import entropy_bits, log_probabilities, rank
from tokentrail.measure.asked import asked
from tokentrail.measure.prompts import Encoded, encode, encoded
from tokentrail.stages.distribution import decoding
from tokentrail.templates import filled
from tokentrail.weights.load import Loaded


@torch.inference_mode()
def measure(loaded: Loaded, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `distribution`. A prompt or a combination of levels that cannot be run has a row with the reason."""
    prompts, refused = encoded(loaded, settings)
    rows = [row for prompt in prompts for row in of_prompt(loaded, prompt, settings)]
    for experiment, levels, text, target in combinations(settings["experiments"]):
        with asked(refused, experiment=experiment, levels=levels):
            prompt = encode(loaded, f"{experiment} ({levels})", text, target)
            logits = forward(loaded.model, prompt.ids, read=last(prompt.ids))[0, 0]
            rows.append(described(loaded, logits, prompt) | {"experiment": experiment, "levels": levels})
    return tables.frame("distribution", rows, refused, model=settings["model"])


def combinations(experiments: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Every experiment with every combination of levels: the experiment's name, the levels, the text, the target."""
    for name, experiment in experiments.items():
        factors = experiment["factors"]
        for chosen in product(*factors.values()):
            levels = dict(zip(factors, chosen, strict=True))
            texts = {factor: factors[factor][level] for factor, level in levels.items()}
            text = filled(experiment["template"], texts)
            told = ", ".join(f"{factor}: {level}" for factor, level in levels.items())
            yield name, told, text, experiment["target"]


def of_prompt(loaded: Loaded, prompt: Encoded, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The prompt's own last position, what decoding rules make of it, and the positions of a greedy continuation."""
    spec, own = loaded.model.spec, prompt.ids.shape[1]
    longest = own + settings["continue_for"]
    capacity = longest if spec.learned_positions is None else min(longest, spec.learned_positions)
    cache = new_cache(spec, 1, capacity, loaded.model.tokens.dtype, loaded.device)
    ids = prompt.ids
    for tokens in range(own, capacity + 1):
        logits = forward(loaded.model, ids, cache=cache, read=last(ids))[0, 0]  # (vocabulary)
        at = {"tokens": tokens, "step": tokens - own}
        yield described(loaded, logits, prompt) | at
        if tokens == own:
            for name, rule in decoding.rules(settings["decoding"]):
                yield described(loaded, logits, prompt, name, rule) | at
        ids = logits.argmax().view(1, 1)


def described(
    loaded: Loaded, logits: Tensor, prompt: Encoded, name: str = "none", rule: decoding.Rule = log_probabilities
) -> dict[str, Any]:
    """A row of logits (vocabulary) in a few numbers, after a decoding rule has made probabilities of it."""
    log_p = rule(logits)
    mass = log_p.exp().sort(descending=True).values.cumsum(0)  # (vocabulary)
    entropy, top1 = entropy_bits(log_p), int(log_p.argmax())
    return {
        "prompt": prompt.name,
        "experiment": "",
        "levels": "",
        "tokens": prompt.ids.shape[1],
        "step": 0,
        "decoding": name,
        "top1_token": loaded.tokenizer.token(top1),
        "top1_probability": log_p[top1].exp().item(),
        "target_probability": log_p[prompt.target].exp().item(),
        "target_rank": rank(log_probabilities(logits), prompt.target),
        "tokens_left": int((log_p > -torch.inf).sum()),
        "entropy_bits": entropy,
        "effective_choices": 2.0**entropy,
        "top5_mass": mass[:5][-1].item(),
        "tokens_for_90_percent": int((mass < 0.9).sum()) + 1,
        "vocabulary": log_p.numel(),
    }
