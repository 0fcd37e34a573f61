"""Which weights share a scale: a matrix as lines, and lines as groups."""

from __future__ import annotations

import torch
from torch import Tensor

from tokentrail.errors import QuantizationError
from tokentrail.quantize.scheme import Scheme


def line_shape(shape: tuple[int, int], scheme: Scheme) -> tuple[int, int]:
    """Number and length of the lines of a matrix (out, in)."""
    out, into = shape
    match scheme.grouping:
        case "input":
            return out, into
        case "output":
            return into, out
        case "flattened":
            return 1, out * into


def lines(matrix: Tensor, scheme: Scheme, turned: bool = False) -> Tensor:
    """A matrix (out, in) as its lines; `turned` says that the checkpoint stores it (in, out)."""
    match scheme.grouping:
        case "input":
            return matrix
        case "output":
            return matrix.t()
        case "flattened":
            return (matrix.t() if turned else matrix).reshape(1, -1)


def matrix_of(lines: Tensor, shape: tuple[int, int], scheme: Scheme, turned: bool = False) -> Tensor:
    """The inverse of `lines`: (out, in)."""
    match scheme.grouping:
        case "input":
            return lines
        case "output":
            return lines.t()
        case "flattened":
            return lines.view(shape[1], shape[0]).t() if turned else lines.view(shape)


def group_length(length: int, scheme: Scheme) -> int:
    """Weights in a whole group of a line of that length."""
    return length if scheme.group_size == "channel" else min(scheme.group_size, length)


def groups_of_line(length: int, scheme: Scheme) -> int:
    """Scales of a line: its whole groups, and one for a rest. Raises QuantizationError for a rest that is refused."""
    whole, rest = divmod(length, group_length(length, scheme))
    if rest and scheme.rest == "refuse":
        raise QuantizationError(
            f"group_size {scheme.group_size} does not divide a line of {length} weights ({rest} are left over); set "
            f"rest to short or choose a group_size that divides it"
        )
    return whole + (rest > 0)


def cut(lines: Tensor, scheme: Scheme) -> list[Tensor]:
    """Lines (lines, length) as (lines, groups, weights): the whole groups, and the rests if there are any."""
    count, length = lines.shape
    size = group_length(length, scheme)
    groups_of_line(length, scheme)
    whole = length - length % size
    parts = [lines[:, :whole].reshape(count, -1, size)]
    return parts if whole == length else [*parts, lines[:, whole:].reshape(count, 1, -1)]


def join(parts: list[Tensor]) -> Tensor:
    """The inverse of `cut`."""
    flat = [part.reshape(part.shape[0], -1) for part in parts]
    return flat[0] if len(flat) == 1 else torch.cat(flat, dim=1)
