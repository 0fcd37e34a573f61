"""The Mamba2 cell: a state that every token fades and writes to. Dao and Gu 2024, "Transformers are SSMs".

For each head, with x_t (p), B_t and C_t (n), a step size dt_t > 0 and a number A < 0,

    state_t = exp(dt_t A) state_{t-1} + dt_t x_t B_t^T          (p, n)
    y_t     = state_t C_t + D x_t                               (p)

`step` is that, for one token. `scan` takes many tokens in chunks: inside a chunk the recurrence is a lower
triangular matrix (`unrolled`) times the inputs, between chunks only the state is carried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tokentrail.forward import spec as specs
from tokentrail.forward.cache import new_state
from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.cells.norm import unit_rms, wide
from tokentrail.forward.kinds.mamba2 import MambaState
from tokentrail.forward.place import Place
from tokentrail.forward.taps import Tap

ACTIVATION = F.silu  # after the convolution
CHUNK = 64  # tokens in one matrix of the scan; any number gives the same result, this one is fast on CPUs


class Mamba2Weights(NamedTuple):
    in_proj: Linear  # (inner + conv_channels + heads, width): gate, then x | B | C, then dt
    conv: Linear  # weight (conv_width, conv_channels), oldest input first, bias (conv_channels)
    dt_bias: Tensor  # (heads)
    A_log: Tensor  # (heads)
    D: Tensor  # (heads)
    norm: Tensor  # (inner)
    out_proj: Linear  # (width, inner)


def assembled(
    spec: specs.Mamba2, tensor: Callable[[str], Tensor | None], linear: Callable[[str], Linear]
) -> Mamba2Weights:
    """The weights, of the cell's tensors and matrices by name."""
    return Mamba2Weights(
        in_proj=linear("in_proj"),
        conv=Linear(tensor("conv.weight").t().contiguous(), tensor("conv.bias")),
        dt_bias=tensor("dt_bias"),
        A_log=tensor("A_log"),
        D=tensor("D"),
        norm=tensor("norm"),
        out_proj=linear("out_proj"),
    )


def mamba2(
    x: Tensor,
    weights: Mamba2Weights,
    spec: specs.Mamba2,
    state: MambaState | None,
    place: Place,
    layer: int,
    tap: Tap,
) -> tuple[Tensor, MambaState]:
    """x (rows, tokens, width) -> (rows, tokens, width), and the state after the last real token of each row."""
    rows, tokens, _ = x.shape
    state = state if state is not None else new_state(spec, rows, 0, x.dtype, x.device)

    together = tap("in_proj", layer, weights.in_proj(x))  # (rows, tokens, inner + conv_channels + heads)
    gate, xBC, dt = together.split([spec.inner, spec.conv_channels, spec.heads], dim=-1)
    gate, xBC = tap("gate", layer, gate), tap("conv_in", layer, xBC)
    xBC, window = convolve(xBC, weights.conv, state.window, place)
    xBC = tap("conv_out", layer, ACTIVATION(xBC))  # (rows, tokens, conv_channels)
    per_group = spec.groups * spec.state_size
    u, B, C = wide(xBC).split([spec.inner, per_group, per_group], dim=-1)
    u = u.view(rows, tokens, spec.heads, spec.head_dim)
    B = B.view(rows, tokens, spec.groups, spec.state_size)
    C = C.view(rows, tokens, spec.groups, spec.state_size)
    u, B, C = tap("ssm_x", layer, u), tap("B", layer, B), tap("C", layer, C)

    dt = tap("dt", layer, step_sizes(dt, weights, spec))  # (rows, tokens, heads)
    if place.real is not None:  # padding neither fades the state nor writes to it
        dt = dt * place.real[..., None]
    A = -torch.exp(wide(weights.A_log))  # (heads)

    if tap.costly:
        pattern = unrolled(dt, A, B, C) * dt.transpose(1, 2)[:, :, None]  # (rows, heads, tokens, tokens)
        y = apply(tap("pattern", layer, pattern), u) + carried(state.ssm, dt, A, C)
        ssm = scan(u, dt, A, B, C, state.ssm)[1]
    elif tokens == 1:
        y, ssm = step(u, dt, A, B, C, state.ssm)
    else:
        y, ssm = scan(u, dt, A, B, C, state.ssm)
    ssm = tap("ssm_state", layer, ssm)  # (rows, heads, head_dim, state_size)
    y = tap("ssm_y", layer, torch.addcmul(y, wide(weights.D)[:, None], u))  # (rows, tokens, heads, head_dim)

    y = tap("gated", layer, gated(y.reshape(rows, tokens, spec.inner), gate))  # the gate comes before the norm
    y = unit_rms(y.view(rows, tokens, spec.groups, -1), spec.eps).view(rows, tokens, spec.inner)
    z = y.to(x.dtype).mul_(weights.norm).view(rows, tokens, spec.heads, spec.head_dim)
    z = tap("z", layer, z.transpose(1, 2))  # (rows, heads, tokens, head_dim), as attention's
    return weights.out_proj(z.transpose(1, 2).reshape(rows, tokens, spec.inner)), MambaState(window, ssm)


def convolve(x: Tensor, conv: Linear, window: Tensor, place: Place) -> tuple[Tensor, Tensor]:
    """Causal depthwise convolution of x (rows, tokens, channels), and the window for the next call.

    The window holds the conv_width - 1 inputs before this call, or zeros before the first.
    """
    tokens, reach = x.shape[1], window.shape[1]
    inputs = torch.cat([window, x], dim=1)  # (rows, reach + tokens, channels)
    out = inputs[:, :tokens] * conv.weight[0]
    for lag in range(1, reach + 1):
        out.addcmul_(inputs[:, lag : lag + tokens], conv.weight[lag])
    if conv.bias is not None:
        out += conv.bias
    if place.lengths is None:
        return out, inputs[:, tokens:]
    last = place.lengths[:, None] + torch.arange(reach, device=x.device)  # (rows, reach): inputs before the padding
    return out, inputs.gather(1, last[..., None].expand(-1, -1, x.shape[2]))


def step_sizes(dt: Tensor, weights: Mamba2Weights, spec: specs.Mamba2) -> Tensor:
    """How far each token moves each head's state: dt (rows, tokens, heads), above 0 and within the cell's limits."""
    return F.softplus(wide(dt) + wide(weights.dt_bias)).clamp(spec.dt_min, spec.dt_max)


def gated(y: Tensor, gate: Tensor) -> Tensor:
    """y times SiLU of the gate, both (rows, tokens, inner)."""
    return F.silu(wide(gate)).mul_(y)


def step(u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The recurrence for one token: u (rows, 1, heads, p), dt (rows, 1, heads), B and C (rows, 1, groups, n)."""
    rows, _, heads, p = u.shape
    groups, n = B.shape[2:]
    fade = torch.exp(dt * A).view(rows, groups, -1, 1, 1)
    write = (dt[..., None] * u).view(rows, groups, -1, p, 1)  # (rows, groups, heads of the group, p, 1)
    old = state.view(rows, groups, -1, p, n)
    new = (fade * old).addcmul_(write, B.view(rows, groups, 1, 1, n))
    y = new.view(rows, groups, -1, n) @ C.view(rows, groups, n, 1)  # (rows, groups, heads of the group * p, 1)
    return y.view(rows, 1, heads, p), new.view_as(state)


def scan(
    u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor, chunk: int = CHUNK
) -> tuple[Tensor, Tensor]:
    """The recurrence for any number of tokens, `chunk` at a time: u (rows, tokens, heads, p) -> y, state."""
    ys, writes = [], u * dt[..., None]
    for start in range(0, u.shape[1], chunk):
        part = slice(start, start + chunk)
        w, d, b, c = writes[:, part], dt[:, part], B[:, part], C[:, part]
        ys.append(apply(unrolled(d, A, b, c), w) + carried(state, d, A, c))
        state = faded_and_written(state, w, d, A, b)
    return torch.cat(ys, dim=1), state


def unrolled(dt: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """The recurrence as a matrix over positions, (rows, heads, l, s): how much of the write dt_s u_s reaches y_l.

    M[l, s] = (C_l . B_s) exp(sum of dt A over s+1..l) for s <= l, and 0 above the diagonal.
    """
    rows, tokens, heads = dt.shape
    alike = C.transpose(1, 2) @ B.permute(0, 2, 3, 1)  # (rows, groups, l, s)
    total = (dt * A).cumsum(dim=1).transpose(1, 2)  # (rows, heads, l)
    span = total[..., :, None] - total[..., None, :]  # (rows, heads, l, s)
    decay = span.clamp(max=0).exp().tril()  # spans into the future would overflow before they are cut
    by_group = decay.view(rows, alike.shape[1], -1, tokens, tokens) * alike[:, :, None]
    return by_group.view(rows, heads, tokens, tokens)


def apply(matrix: Tensor, u: Tensor) -> Tensor:
    """(rows, heads, l, s) times u (rows, s, heads, p) -> (rows, l, heads, p)."""
    return (matrix @ u.transpose(1, 2)).transpose(1, 2)


def carried(state: Tensor, dt: Tensor, A: Tensor, C: Tensor) -> Tensor:
    """What each token reads of the state that stood before the first of them: (rows, l, heads, p)."""
    rows, heads, p, n = state.shape
    groups = C.shape[2]
    flat = state.view(rows, groups, -1, n)  # (rows, groups, heads of the group * p, n)
    read = C.transpose(1, 2) @ flat.transpose(-1, -2)  # (rows, groups, l, heads of the group * p)
    read = read.transpose(1, 2).reshape(rows, -1, heads, p)
    return read * (dt * A).cumsum(dim=1).exp()[..., None]


def faded_and_written(state: Tensor, writes: Tensor, dt: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """The state after all tokens: the old one faded, plus every write dt_s u_s faded by the tokens after it."""
    rows, heads, p, n = state.shape
    total = (dt * A).cumsum(dim=1)  # (rows, s, heads)
    left = (writes * (total[:, -1:] - total).exp()[..., None]).reshape(rows, dt.shape[1], B.shape[2], -1)
    written = left.permute(0, 2, 3, 1) @ B.transpose(1, 2)  # (rows, groups, heads of the group * p, n)
    return torch.addcmul(written.view(rows, heads, p, n), state, total[:, -1].exp()[..., None, None])
