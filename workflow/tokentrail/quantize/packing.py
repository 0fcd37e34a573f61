"""Codes as bytes: rows of codes of 2 to 8 bits, one after the other, the first code in the lowest bits.

A row is one little-endian stream of bits and begins at a whole byte, so that it can be read alone. Four-bit codes
thus lie two in a byte, the first in the low half.
"""

from __future__ import annotations

from math import ceil, gcd

import torch
import torch.nn.functional as F
from torch import Tensor


def word(bits: int) -> tuple[int, int, torch.dtype]:
    """The smallest number of codes that fills whole bytes, that number of bytes, and a dtype that holds them."""
    codes, size = 8 // gcd(8, bits), bits // gcd(8, bits)
    return codes, size, torch.uint8 if size == 1 else torch.int32 if size < 4 else torch.int64


def steps(count: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0, width, 2 width, ...: how far each of `count` pieces is shifted."""
    return width * torch.arange(count, dtype=dtype, device=device)


def pack(codes: Tensor, bits: int) -> Tensor:
    """codes (rows, n), int8, from -2^(bits-1) -> bytes (rows, ceil(n * bits / 8)), uint8."""
    rows, n = codes.shape
    of_word, size, dtype = word(bits)
    raised = F.pad(codes.short() + 2 ** (bits - 1), (0, -n % of_word)).to(dtype).view(rows, -1, of_word)
    words = (raised << steps(of_word, bits, dtype, codes.device)).sum(dim=-1, keepdim=True, dtype=dtype)
    packed = (words >> steps(size, 8, dtype, codes.device)) & 0xFF  # (rows, words, bytes)
    return packed.to(torch.uint8).view(rows, -1)[:, : ceil(n * bits / 8)].contiguous()


def unpack(packed: Tensor, bits: int, n: int) -> Tensor:
    """The inverse: bytes (rows, ceil(n * bits / 8)) -> codes (rows, n), int8."""
    rows, width = packed.shape
    of_word, size, dtype = word(bits)
    whole = F.pad(packed, (0, -width % size)).to(dtype).view(rows, -1, size)
    words = (whole << steps(size, 8, dtype, packed.device)).sum(dim=-1, keepdim=True, dtype=dtype)
    raised = (words >> steps(of_word, bits, dtype, packed.device)) & (2**bits - 1)  # (rows, words, codes)
    return (raised.short() - 2 ** (bits - 1)).to(torch.int8).view(rows, -1)[:, :n].contiguous()
