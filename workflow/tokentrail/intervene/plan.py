"""The order of the passes: variants by the first layer that they touch, in blocks that fit the memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tokentrail.errors import ConfigError
from tokentrail.forward import spec as specs
from tokentrail.forward.cache import formula_bytes
from tokentrail.intervene.interventions import Variant

HOLES = 2  # a block takes so many times what its rows hold: their growing number leaves holes in the heap


def blocks(
    variants: Sequence[Variant], spec: specs.Spec, tokens: int, memory: int, itemsize: int = 4
) -> Iterator[list[int]]:
    """Indices of the variants that edit values, block by block, each in the order of the first layer touched.

    Variants that need the attention weights themselves are kept apart from those that do not, because explicit
    weights cost more than fused attention. Raises ConfigError if not even one row fits `memory` bytes.
    """
    chosen = [i for i, variant in enumerate(variants) if variant.state_after is None]
    order = sorted(chosen, key=lambda i: (variants[i].touches_pattern, variants[i].first_layer, i))
    for pattern in (False, True):
        group = [i for i in order if variants[i].touches_pattern is pattern]
        yield from in_pieces(group, bytes_per_row(spec, tokens, pattern, itemsize), tokens, memory)


def state_blocks(
    variants: Sequence[Variant], spec: specs.Spec, tokens: int, memory: int, itemsize: int = 4
) -> Iterator[list[int]]:
    """Indices of the variants that edit states, block by block, each after one position; raises as `blocks`."""
    after: dict[int, list[int]] = defaultdict(list)
    for i, variant in enumerate(variants):
        if variant.state_after is not None:
            after[variant.state_after].append(i)
    needed = bytes_per_row(spec, tokens, pattern=False, itemsize=itemsize)
    needed += formula_bytes(spec, tokens, itemsize).total
    for group in after.values():
        yield from in_pieces(group, needed, tokens, memory)


def in_pieces(group: list[int], needed: int, tokens: int, memory: int) -> Iterator[list[int]]:
    """Pieces of `group` whose rows, which hold `needed` bytes each, fit the memory."""
    taken = HOLES * needed
    rows = memory // taken
    if group and rows < 1:
        raise ConfigError(
            f"memory_mb is {memory >> 20}, but one row of {tokens} tokens needs {(taken >> 20) + 1}; raise it"
        )
    yield from (group[start : start + rows] for start in range(0, len(group), max(rows, 1)))


def bytes_per_row(spec: specs.Spec, tokens: int, pattern: bool, itemsize: int) -> int:
    """An upper estimate of what one row holds at once: the stream and its copies, the widest cell, the logits."""
    widest = max(cell.widest(tokens, pattern) for cell in spec.cells)
    return itemsize * (tokens * (6 * spec.width + widest) + 4 * spec.vocabulary)
