"""The training loop: generated text, through the hand-written pass, with autograd."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import Tap
from tokentrail.training.parameters import model_of
from tokentrail.training.settings import Phase, Training
from tokentrail.training.text import Parts, Writer
from tokentrail.training.vocabulary import encode

READ_SHARE = 0.25  # of the tokens that are no answers
LAST_RATE = 0.05  # of the largest learning rate


class DropMixers(Tap):
    """Gives each text of a batch, at each layer, nothing from the mixer with some probability.

    Single layers are then not needed for the answer, much as in large models (Fan et al. 2020, LayerDrop).
    """

    def __init__(self, probability: float, generator: torch.Generator):
        self.probability = probability
        self.generator = generator

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        if site != "mixer_out" or self.probability == 0:
            return tensor
        kept = torch.rand(tensor.shape[0], 1, 1, generator=self.generator) >= self.probability
        return tensor * kept


@dataclass(frozen=True)
class Step:
    """What a step reports."""

    number: int
    tokens: int
    loss: float
    answer_loss: float


def batches(phase: Phase, parts: Parts, tokenizer: Tokenizer, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """For each step of a phase: ids and answers, (texts, tokens), as `vocabulary.encode` gives them."""
    writer = Writer(parts, seed, count=lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))
    shortest, longest = (math.log(length) for length in phase.lengths)
    for _ in range(phase.steps):
        length = round(math.exp(writer.rng.uniform(shortest, longest)))
        texts = [writer.text(length) for _ in range(max(1, phase.batch_tokens // length))]
        ids, answers = encode(tokenizer, texts, phase.lengths[1])
        yield torch.from_numpy(ids), torch.from_numpy(answers)


def asked(answers: Tensor, generator: torch.Generator) -> Tensor:
    """The positions (texts, n) whose next token is learned: those before an answer, and a random share of the rest.

    The head is a third of the work, and most next tokens of a text are filler. A row may name positions past the end
    of its text; `losses` leaves them out.
    """
    following = answers[:, 1:]
    n = int((following == 1).sum(dim=1).max()) + math.ceil(READ_SHARE * following.shape[1])
    first = following * 2 + torch.rand(following.shape, generator=generator)  # answers, then the rest, then no text
    return first.topk(min(n, following.shape[1])).indices


def losses(logits: Tensor, ids: Tensor, answers: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy in nats of the tokens after the positions `read`, all of them and those of answers.

    logits (texts, n, vocabulary) are those at `read` (texts, n).
    """
    targets, kinds = ids.gather(1, read + 1), answers.gather(1, read + 1)  # (texts, n)
    nll = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
    return nll[kinds >= 0].mean(), nll[kinds == 1].mean()


def learning_rate(step: int, steps: int, training: Training) -> float:
    """A linear rise, then a cosine down to a twentieth."""
    if step < training.warmup:
        return training.learning_rate * (step + 1) / training.warmup
    done = (step - training.warmup) / max(1, steps - training.warmup)
    return training.learning_rate * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * done)) / 2)


def optimizer(parameters: dict[str, Tensor], training: Training) -> torch.optim.Optimizer:
    """AdamW, with decay on the matrices alone."""
    matrices = [p for name, p in parameters.items() if p.dim() == 2 and "A_log" not in name]
    others = [p for p in parameters.values() if not any(p is m for m in matrices)]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=(0.9, 0.98))


def train(
    parameters: dict[str, Tensor], spec: specs.Spec, training: Training, parts: Parts, tokenizer: Tokenizer
) -> Iterator[Step]:
    """Trains `parameters` (by stored name, as `parameters.initial` makes them) in place; each step reports."""
    generator = torch.Generator().manual_seed(training.seed)
    drop = DropMixers(training.drop_mixers, generator)
    adam = optimizer(parameters, training)
    steps, number = sum(phase.steps for phase in training.phases), 0
    for i, phase in enumerate(training.phases):
        for ids, answers in batches(phase, parts, tokenizer, seed=training.seed * 1000 + i):
            for group in adam.param_groups:
                group["lr"] = learning_rate(number, steps, training)
            read = asked(answers, generator)
            logits = forward(model_of(spec, parameters), ids, tap=drop, read=read)
            every, answer = losses(logits, ids, answers, read)
            adam.zero_grad()
            (every + training.answer_weight * answer).backward()
            torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
            adam.step()
            number += 1
            yield Step(number, ids.numel(), every.item(), answer.item())
