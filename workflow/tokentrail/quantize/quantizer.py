"""Codes and scales of a matrix, and the matrix read back from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tokentrail.errors import OutOfRangeError
from tokentrail.quantize.groups import cut, groups_of_line, join, line_shape, lines, matrix_of
from tokentrail.quantize.scheme import Scheme

SEARCHED = [1 - step / 20 for step in range(11)]  # of the scale that covers the group: 1, 0.95, ... 0.5
AT_ONCE = 1 << 18  # weights worked on at a time, so that every step finds them in a core's cache


@dataclass(frozen=True)
class Quantized:
    """A matrix (out, in) as codes and scales."""

    scheme: Scheme
    codes: Tensor  # (out, in), int8
    scales: Tensor  # (lines, groups of a line)
    middles: Tensor | None  # like scales; None in symmetric schemes
    outlier_places: Tensor  # (outliers), int32: row * in + column
    outlier_values: Tensor  # (outliers), in the format of the scales
    turned: bool = False  # the checkpoint stores the matrix (in, out); matters to flattened groups alone


def quantize(matrix: Tensor, scheme: Scheme, turned: bool = False, name: str = "the matrix") -> Quantized:
    """matrix (out, in), of any floating dtype -> its codes and scales, worked out in float32.

    Raises QuantizationError if groups do not divide a line and the scheme refuses a rest, and OutOfRangeError if a
    scale, a middle or an outlier is too large for the format that it is stored in. Errors call the matrix `name`.
    """
    groups_of_line(line_shape(matrix.shape, scheme)[1], scheme)
    matrix = whole = matrix.float()
    places = largest(matrix, scheme.outliers)
    values = matrix.flatten()[places].to(scheme.scale_dtype)
    if len(places):
        matrix = matrix.flatten().index_fill(0, places, 0.0).view(matrix.shape)
    parts = [chosen(part, scheme) for part in cut(lines(matrix, scheme, turned), scheme)]
    codes, scales, middles = (join(list(of_parts)) for of_parts in zip(*parts, strict=True))
    for what, stored_as in (("a scale", scales), ("a middle", middles), ("an outlier", values)):
        if not stored_as.isfinite().all():
            raise OutOfRangeError(
                f"{scheme.scales} cannot hold {what} of {name}, whose largest weight is "
                f"{whole.abs().max().item():.3g}: it ends at {torch.finfo(scheme.scale_dtype).max:.3g}; set scales to "
                f"{'float32' if scheme.scales == 'bfloat16' else 'bfloat16 or float32'}"
            )
    return Quantized(
        scheme,
        codes=matrix_of(codes, matrix.shape, scheme, turned).contiguous(),
        scales=scales,
        middles=None if scheme.symmetric else middles,
        outlier_places=places.int(),
        outlier_values=values,
        turned=turned,
    )


def dequantize(q: Quantized) -> Tensor:
    """The matrix (out, in) that the codes and scales stand for, in float32: code * scale + middle."""
    codes = cut(lines(q.codes, q.scheme, q.turned), q.scheme)
    whole = codes[0].shape[1]
    spans = [slice(0, whole), slice(whole, None)][: len(codes)]
    parts = []
    for part, span in zip(codes, spans, strict=True):
        read = part.float().mul_(q.scales[:, span, None].float())
        parts.append(read if q.middles is None else read.add_(q.middles[:, span, None].float()))
    matrix = matrix_of(join(parts), q.codes.shape, q.scheme, q.turned).contiguous()
    if len(q.outlier_places):
        matrix.view(-1)[q.outlier_places.long()] = q.outlier_values.float()
    return matrix


def largest(matrix: Tensor, share: float) -> Tensor:
    """Places of the share of weights with the largest absolute values, in the order of the matrix."""
    count = round(share * matrix.numel())
    if count == 0:
        return torch.empty(0, dtype=torch.int64, device=matrix.device)
    return matrix.flatten().abs().topk(count, sorted=False).indices.sort().values


class Chosen(NamedTuple):
    codes: Tensor  # (lines, groups, weights), int8
    scales: Tensor  # (lines, groups, 1)
    middles: Tensor  # (lines, groups, 1)


def chosen(groups: Tensor, scheme: Scheme) -> Chosen:
    """groups (lines, groups, weights) -> codes, scales and middles, a block of groups at a time."""
    flat = groups.reshape(-1, groups.shape[-1])
    blocks = [chosen_block(block, scheme) for block in flat.split(max(1, AT_ONCE // flat.shape[1]))]
    shape = (*groups.shape[:2], -1)
    return Chosen(*(torch.cat(of_blocks).view(shape) for of_blocks in zip(*blocks, strict=True)))


def chosen_block(groups: Tensor, scheme: Scheme) -> Chosen:
    """groups (groups, weights). With a search, each group keeps the scale with the least squared error."""
    step, centre = widest(groups, scheme)
    if scheme.scale == "search":
        errors = torch.stack([squared_error(groups, step * share, centre, scheme) for share in SEARCHED])
        errors = errors.nan_to_num(nan=torch.inf)  # a scale that its format cannot hold loses to any other
        step = step * groups.new_tensor(SEARCHED)[errors.argmin(dim=0)]  # the first of equals: the widest
    scales, middles = stored(step, centre, scheme)
    return Chosen(nearest(groups, scales, middles, scheme).to(torch.int8), scales, middles)


def widest(groups: Tensor, scheme: Scheme) -> tuple[Tensor, Tensor]:
    """The step whose codes reach every weight of the group, and the centre of the codes' range, each (groups, 1)."""
    low, high = groups.amin(dim=-1, keepdim=True), groups.amax(dim=-1, keepdim=True)
    if scheme.symmetric:
        return torch.maximum(-low, high) / scheme.steps, torch.zeros_like(low)
    return (high - low) / (scheme.highest - scheme.lowest), (high + low) / 2


def stored(step: Tensor, centre: Tensor, scheme: Scheme) -> tuple[Tensor, Tensor]:
    """Scales and middles in the format that they are stored in, for a step and the centre of the codes' range."""
    scales = step.to(scheme.scale_dtype)
    # The codes' range is not centred on code 0: it has one code more below it.
    middles = centre if scheme.symmetric else centre + scales.float() / 2
    return scales, middles.to(scheme.scale_dtype)


def nearest(groups: Tensor, scales: Tensor, middles: Tensor, scheme: Scheme) -> Tensor:
    """The nearest codes for the scales and middles as they are stored: (groups, weights), float32."""
    away = groups if scheme.symmetric else groups - middles.float()
    used = scales.float()
    # Where all weights are alike, or too small for the format, the step is 0 and every code is 0.
    return away.div(used.where(used > 0, torch.inf)).round_().clamp_(scheme.lowest, scheme.highest)


def squared_error(groups: Tensor, step: Tensor, centre: Tensor, scheme: Scheme) -> Tensor:
    """What the groups lose with this step: (groups, 1)."""
    scales, middles = stored(step, centre, scheme)
    lost = nearest(groups, scales, middles, scheme).mul_(scales.float()).sub_(groups)
    return (lost if scheme.symmetric else lost.add_(middles.float())).square_().sum(dim=-1, keepdim=True)
