"""What a decoder may make of one row of logits: the model is not run again, so no rule changes which token is first.

Each rule maps logits (vocabulary) to log probabilities (vocabulary) in float64, -inf for what it rules out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tokentrail.measure.answers import log_probabilities, ordered

Rule = Callable[[Tensor], Tensor]


def rules(settings: dict[str, Any]) -> Iterator[tuple[str, Rule]]:
    """The rules that the settings `temperatures`, `top_k` and `top_p` ask for, by name."""
    for t in settings["temperatures"]:
        yield f"temperature {t:g}", partial(temperature, t=t)
    for k in settings["top_k"]:
        yield f"top-k {k}", partial(top_k, k=k)
    for p in settings["top_p"]:
        yield f"top-p {p:g}", partial(top_p, p=p)


def temperature(logits: Tensor, t: float) -> Tensor:
    """Logits divided by t > 0: below 1 sharper, above 1 flatter. Odds are raised to the power 1/t."""
    return log_probabilities(logits.double() / t)


def top_k(logits: Tensor, k: int) -> Tensor:
    """The k most likely tokens alone (Fan et al. 2018); ties go to the lower id."""
    return only(logits, ordered(logits)[:k])


def top_p(logits: Tensor, p: float) -> Tensor:
    """The fewest most likely tokens that hold a probability of p together (Holtzman et al. 2020, nucleus)."""
    order = ordered(logits)
    before = log_probabilities(logits)[order].exp().cumsum(0)
    return only(logits, order[: int((before < p).sum()) + 1])


def only(logits: Tensor, kept: Tensor) -> Tensor:
    """Log probabilities of the ids `kept` alone, renormalised."""
    cut = torch.full_like(logits, -torch.inf, dtype=torch.float64)
    cut[kept] = log_probabilities(logits[kept])
    return cut
