"""Mamba2's three forms, step, chunked and unrolled, are one recurrence, held against a loop written from the paper."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokentrail.forward.cells import mamba2

WITHIN = 1e-12


def inputs(rows, tokens, heads, groups, p=3, n=5, seed=0):
    g = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    dt = torch.nn.functional.softplus(rand(rows, tokens, heads) - 1)
    A = -torch.exp(rand(heads))
    return (
        rand(rows, tokens, heads, p),
        dt,
        A,
        rand(rows, tokens, groups, n),
        rand(rows, tokens, groups, n),
        rand(rows, heads, p, n),
    )


def recurrence(u, dt, A, B, C, state):
    """y_t = C_t state_t, state_t = exp(dt_t A) state_{t-1} + dt_t x_t B_t, one head and token at a time."""
    state, ys = state.clone(), torch.zeros_like(u)
    rows, tokens, heads, _ = u.shape
    for r in range(rows):
        for t in range(tokens):
            for h in range(heads):
                g = h // (heads // B.shape[2])
                fade = torch.exp(dt[r, t, h] * A[h])
                state[r, h] = fade * state[r, h] + dt[r, t, h] * torch.outer(u[r, t, h], B[r, t, g])
                ys[r, t, h] = state[r, h] @ C[r, t, g]
    return ys, state


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 3),
    tokens=st.integers(1, 20),
    per_group=st.integers(1, 3),
    groups=st.integers(1, 3),
    chunk=st.integers(1, 21),
    seed=st.integers(0, 99),
)
def test_all_forms_equal_the_recurrence(rows, tokens, per_group, groups, chunk, seed):
    u, dt, A, B, C, state = inputs(rows, tokens, per_group * groups, groups, seed=seed)
    ys, final = recurrence(u, dt, A, B, C, state)

    scanned, after = mamba2.scan(u, dt, A, B, C, state, chunk=chunk)
    assert (scanned - ys).abs().max() < WITHIN
    assert (after - final).abs().max() < WITHIN

    unrolled = mamba2.apply(mamba2.unrolled(dt, A, B, C), u * dt[..., None]) + mamba2.carried(state, dt, A, C)
    assert (unrolled - ys).abs().max() < WITHIN

    stepped = state
    for t in range(tokens):
        y, stepped = mamba2.step(*(x[:, t : t + 1] for x in (u, dt)), A, B[:, t : t + 1], C[:, t : t + 1], stepped)
        assert (y[:, 0] - ys[:, t]).abs().max() < WITHIN
    assert (stepped - final).abs().max() < WITHIN


def test_a_token_with_no_step_leaves_the_state_alone():
    u, dt, A, B, C, state = inputs(1, 4, 2, 1)
    _, after = mamba2.scan(u, dt * 0, A, B, C, state)
    assert torch.equal(after, state)


def test_the_unrolled_matrix_is_causal():
    _, dt, A, B, C, _ = inputs(2, 9, 4, 2)
    assert torch.equal(mamba2.unrolled(dt, A, B, C).triu(1), torch.zeros(2, 4, 9, 9, dtype=torch.float64))


@pytest.mark.parametrize("size", [1e-6, 30.0])
def test_extreme_step_sizes_stay_finite(size):
    u, dt, A, B, C, state = inputs(1, 200, 2, 1)
    for y in mamba2.scan(*(x.float() for x in (u, torch.full_like(dt, size), A * 10, B, C, state))):
        assert torch.isfinite(y).all()
