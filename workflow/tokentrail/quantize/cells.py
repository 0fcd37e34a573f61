"""Cells that keep codes and scales as stored bytes, and torch's CPU kernels that read them.

Both kernels take activations and give results in the format of the scales, and sum in float32. In bfloat16 they are
vectorised; in float32 torch has them as a plain loop, fit for checking the bytes and for nothing else.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tokentrail.quantize.groups import group_length
from tokentrail.quantize.packing import unpack
from tokentrail.quantize.scheme import Scheme

INT4_GROUPS = (32, 64, 128, 256)  # group sizes that the four-bit kernel knows
INT4_ROWS = 64  # outputs that the four-bit kernel lays out together; it needs a multiple of 16
AT_ONCE = 1 << 23  # codes converted at a time


class PackedInt4(NamedTuple):
    """y = x W^T + b with W as four-bit codes, two in a byte, and a scale and a middle for each group."""

    codes: Tensor  # (out rounded up, in / 2), uint8, in the kernel's own layout for this CPU
    scales: Tensor  # (groups of a row, out rounded up, 2): scale and middle
    group_size: int
    out: int
    bias: Tensor | None = None  # (out)

    def __call__(self, x: Tensor) -> Tensor:
        flat = x.to(self.scales.dtype).reshape(-1, x.shape[-1])
        y = torch._weight_int4pack_mm_for_cpu(flat, self.codes, self.group_size, self.scales)
        y = (y if y.shape[1] == self.out else y[:, : self.out]).to(x.dtype).view(*x.shape[:-1], self.out)
        return y if self.bias is None else y + self.bias


class PackedInt8(NamedTuple):
    """y = x W^T + b with W as eight-bit codes and one scale for each output."""

    codes: Tensor  # (out, in), int8
    scales: Tensor  # (out)
    bias: Tensor | None = None  # (out)

    def __call__(self, x: Tensor) -> Tensor:
        flat = x.to(self.scales.dtype).reshape(-1, x.shape[-1])
        y = torch._weight_int8pack_mm(flat, self.codes, self.scales)
        y = y.to(x.dtype).view(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias


class PackedTable(NamedTuple):
    """A table whose rows are looked up: only the rows asked for are read back."""

    packed: Tensor  # (rows of the table, bytes of a row), uint8, as stored
    scales: Tensor  # (rows of the table, groups of a row)
    middles: Tensor | None  # like scales
    scheme: Scheme
    width: int

    @property
    def dtype(self) -> torch.dtype:
        """Of the rows that come out."""
        return torch.float32

    def __call__(self, ids: Tensor) -> Tensor:
        """ids (rows, tokens) -> (rows, tokens, width)."""
        at = ids.flatten()
        codes = unpack(self.packed[at], self.scheme.bits, self.width).float()
        scales, middles = (spread(t, at, self.width, self.scheme) for t in (self.scales, self.middles))
        rows = codes * scales if middles is None else codes * scales + middles
        return rows.view(*ids.shape, self.width)


def spread(of_groups: Tensor | None, rows: Tensor, width: int, scheme: Scheme) -> Tensor | None:
    """What each group of the rows has, for each of its weights: (rows, width)."""
    if of_groups is None:
        return None
    return of_groups[rows].float().repeat_interleave(group_length(width, scheme), dim=1)[:, :width]


def refusal(scheme: Scheme, shape: tuple[int, int], device: torch.device) -> str:
    """Why no kernel here runs a matrix (out, in) of this scheme from its codes; empty if one does."""
    into = shape[1]
    if device.type != "cpu":
        return f"the packed kernels run on the CPU, not on {device.type}"
    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        return "this CPU has none of the vector instructions that the packed kernels are written for"
    if scheme.outliers:
        return "no packed kernel adds outliers"
    if scheme.grouping != "input":
        return f"no packed kernel reads groups along the {scheme.grouping}" + (
            "" if scheme.grouping == "output" else " matrix"
        )
    if scheme.scales == "float16":
        return "the packed kernels read bfloat16 scales, not float16"
    match scheme.bits:
        case 8 if scheme.group_size != "channel":
            return f"the 8-bit kernel reads one scale a row (group_size channel), not groups of {scheme.group_size}"
        case 8 if not scheme.symmetric:
            return "the 8-bit kernel reads symmetric codes alone"
        case 4 if group_length(into, scheme) not in INT4_GROUPS:
            return f"the 4-bit kernel reads groups of {', '.join(map(str, INT4_GROUPS))}, not of {scheme.group_size}"
        case 4 if into % group_length(into, scheme):
            return f"the 4-bit kernel needs groups that divide a row; {scheme.group_size} does not divide {into}"
        case 4 | 8:
            return ""
    return f"there is no packed kernel for {scheme.bits} bits"


def packed_linear(
    packed: Tensor, scales: Tensor, middles: Tensor | None, scheme: Scheme, into: int, bias: Tensor | None = None
) -> PackedInt4 | PackedInt8:
    """A cell from stored bytes: packed (out, bytes of a row), scales and middles (out, groups of a row)."""
    together = ceil(AT_ONCE / into / INT4_ROWS) * INT4_ROWS
    if scheme.bits == 8:
        codes = torch.cat([unpack(block, 8, into) for block in packed.split(together)])
        return PackedInt8(codes, scales[:, 0].contiguous(), bias)
    out = packed.shape[0]
    unused = -out % INT4_ROWS
    blocks = F.pad(packed, (0, 0, 0, unused)).split(together)
    laid_out = [
        torch._convert_weight_to_int4pack_for_cpu(unpack(block, 4, into).int() - scheme.lowest, 1) for block in blocks
    ]
    pairs = torch.stack([scales, torch.zeros_like(scales) if middles is None else middles], dim=-1)
    pairs = F.pad(pairs, (0, 0, 0, 0, 0, unused)).transpose(0, 1).contiguous()
    return PackedInt4(torch.cat(laid_out), pairs, group_length(into, scheme), out, bias)
