"""Probabilities, ranks and divergences of a row of logits."""

from __future__ import annotations

import math

import pytest
import torch
from tokentrail.measure import answers


def test_ranks_count_what_comes_before_and_break_ties_by_id():
    scores = torch.tensor([1.0, 3.0, 3.0, 2.0])
    assert [answers.rank(scores, i) for i in range(4)] == [3, 0, 1, 2]
    assert answers.ordered(scores).tolist() == [1, 2, 3, 0]


def test_entropy_and_kl_have_their_textbook_values():
    even = torch.log(torch.full((8,), 1 / 8, dtype=torch.float64))
    assert answers.entropy_bits(even) == pytest.approx(3)
    p, q = torch.tensor([0.5, 0.5]).double().log(), torch.tensor([0.25, 0.75]).double().log()
    assert answers.kl(p, q) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert answers.kl(p, p) == 0


def test_certain_and_impossible_tokens_stay_finite():
    log_p = answers.log_probabilities(torch.tensor([800.0, -800.0, 0.0]))
    assert answers.entropy_bits(log_p) == 0
    assert answers.kl(log_p, torch.zeros(3).double().log_softmax(0)) == pytest.approx(math.log(3))


def test_an_answer_reads_its_row():
    said = answers.answer(torch.log(torch.tensor([0.2, 0.7, 0.1])), target=0)
    assert (said.top1, said.target_rank) == (1, 1)
    assert said.target_probability == pytest.approx(0.2)
    assert said.top1_probability == pytest.approx(0.7)
