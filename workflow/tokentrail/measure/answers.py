"""What a row of logits answers: probabilities, ranks, entropy. All in float64, ties broken by the lower id."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tokentrail.errors import NotFiniteError


@dataclass(frozen=True)
class Answer:
    """One row of logits (vocabulary), read with a target in mind."""

    log_p: Tensor  # (vocabulary), float64
    target: int

    @property
    def target_probability(self) -> float:
        return self.log_p[self.target].exp().item()

    @property
    def target_rank(self) -> int:
        return rank(self.log_p, self.target)

    @property
    def top1(self) -> int:
        return int(self.log_p.argmax())

    @property
    def top1_probability(self) -> float:
        return self.log_p.max().exp().item()

    @property
    def entropy_bits(self) -> float:
        return entropy_bits(self.log_p)


def answer(logits: Tensor, target: int) -> Answer:
    """logits (vocabulary) -> Answer."""
    return Answer(log_probabilities(logits), target)


def log_probabilities(logits: Tensor) -> Tensor:
    """(..., vocabulary) -> the same, log softmax in float64.

    Raises NotFiniteError if a logit is NaN or infinite: ranks and divergences of such logits look like numbers.
    """
    if not logits.isfinite().all():
        kind = str(logits.dtype).removeprefix("torch.")
        raise NotFiniteError(f"the pass overflows: its logits hold NaN or infinity in {kind}; leave out this input")
    return logits.double().log_softmax(dim=-1)


def rank(scores: Tensor, token: int) -> int:
    """Tokens of scores (vocabulary) that come before `token`."""
    own = scores[token]
    return int((scores > own).sum() + (scores[:token] == own).sum())


def ordered(scores: Tensor) -> Tensor:
    """Token ids of scores (vocabulary), the largest first."""
    return torch.argsort(scores, descending=True, stable=True)


def entropy_bits(log_p: Tensor) -> float:
    """Entropy of log probabilities (vocabulary), in bits. Shannon 1948."""
    return -torch.special.xlogy(log_p.exp(), log_p.exp()).sum().item() / math.log(2)


def kl(log_p: Tensor, log_q: Tensor) -> float:
    """KL(p || q) of log probabilities (vocabulary), in nats."""
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), 0.0).sum().item()
