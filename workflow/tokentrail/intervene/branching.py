"""The branching batch: every variant's row leaves the clean pass at the first layer that it changes.

The rows run in blocks. A block is one batch that starts at its first layer and takes in rows as it goes up, each a
copy of the clean row at the layer that it changes first. So what lies below a variant's first edit is never computed
twice, and every matrix product sees many rows. The clean row itself is the first row of the first block, and its
stream is kept at every layer for all blocks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tokentrail.errors import InterventionError
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import Model, check_room, embed, forward, last, through_layers, unembed
from tokentrail.forward.place import Place
from tokentrail.forward.taps import Tap
from tokentrail.intervene.edits import apply
from tokentrail.intervene.interventions import Intervention, Variant, check
from tokentrail.intervene.plan import blocks, state_blocks

CLEAN = Variant("clean", ())
ALONE = 32  # one in so many variants is run again on its own,
AT_MOST = 3  # at least one and at most so many,
AGREE = 1e-5  # and a probability may differ by so much


@dataclass(frozen=True)
class Branched:
    """What the variants say at the last position, in their own order."""

    clean: Tensor  # (vocabulary)
    logits: Tensor  # (variants, vocabulary)
    applied: list[int]  # edits that each pass applied; equal to what was planned, or the run has failed


class BranchTap(Tap):
    """Takes in the rows of a block at their first layers, edits them, and counts.

    `streams` holds the clean stream (1, tokens, width) entering each layer, as far as it is known: a block that is
    led by the clean row adds to it.
    """

    def __init__(self, variants: Sequence[Variant], streams: dict[int, Tensor]):
        self.streams = streams
        self.is_led = variants[0] is CLEAN
        self.applied = Counter()
        self.edits: dict[tuple[str, int], list[tuple[int, Intervention]]] = defaultdict(list)
        for row, variant in enumerate(variants):
            for edit in variant.interventions:
                for layer in edit.layers:
                    self.edits[edit.site, layer].append((row, edit))
        self.joining = Counter(variant.first_layer for variant in variants)
        self.costly = frozenset({"pattern"} if any(v.touches_pattern for v in variants) else ())

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        if site == "resid_pre":
            if self.is_led and layer not in self.streams:
                self.streams[layer] = tensor[:1].clone()
            if rows := self.joining[layer]:
                tensor = torch.cat([tensor, self.streams[layer].expand(rows, -1, -1)])
        for row, edit in self.edits.get((site, layer), ()):
            apply(edit, layer, tensor[row])
            self.applied[row] += 1
        return tensor


@torch.inference_mode()
def run(model: Model, ids: Tensor, variants: Sequence[Variant], memory: int) -> Branched:
    """All variants of one prompt, ids (1, tokens), in blocks of at most `memory` bytes.

    Raises InterventionError if a variant cannot be applied, if the edits applied are not those planned, or if a
    variant run alone says something else; ConfigError if no row fits the memory; IndexError as `forward`.
    """
    for variant in variants:
        check(variant, model.spec, ids.shape[1])
    rows = [CLEAN, *variants]
    logits = model.tokens.new_empty(len(rows), model.spec.vocabulary)
    applied = [0] * len(rows)

    def note(block: list[int], said: Tensor, counts: Counter) -> None:
        logits[block] = said
        for row, i in enumerate(block):
            applied[i] = counts[row]

    place = Place(ids, None, None)
    check_room(model.spec, None, place)
    streams = {0: embed(model, ids, place)}
    room = {"spec": model.spec, "tokens": ids.shape[1], "memory": memory, "itemsize": logits.element_size()}
    for block in blocks(rows, **room):
        note(block, *run_block(model, place, [rows[i] for i in block], streams))
    for block in state_blocks(rows, **room):
        note(block, *run_states(model, ids, [rows[i] for i in block]))
    clean, logits, applied = logits[0], logits[1:], applied[1:]
    check_counts(variants, applied)
    check_alone(model, ids, variants, logits)
    return Branched(clean, logits, applied)


def run_block(
    model: Model, place: Place, variants: Sequence[Variant], streams: dict[int, Tensor]
) -> tuple[Tensor, Counter]:
    """Variants in the order of their first layers -> logits (variants, vocabulary), and edits applied by row."""
    first = variants[0].first_layer
    tap = BranchTap(variants, streams)
    nobody = streams[first][:0]  # (0, tokens, width): the first rows join at the first layer
    x = through_layers(model, nobody, place, tap=tap, first=first)
    return unembed(model, x[:, -1:])[:, 0], tap.applied


def run_states(model: Model, ids: Tensor, variants: Sequence[Variant]) -> tuple[Tensor, Counter]:
    """Variants that edit states after one position: the tokens up to it are read once, by one row, for all of them.

    Every variant is a row of its own from there on, with its own copy of the caches.
    """
    cut = variants[0].state_after + 1
    read, rest = ids[:, :cut], ids[:, cut:].expand(len(variants), -1)
    one = new_cache(model.spec, 1, ids.shape[1], model.tokens.dtype, ids.device)
    forward(model, read, one, read=last(read))
    cache, applied = one.repeat(len(variants)), Counter()
    for row, variant in enumerate(variants):
        for edit in variant.interventions:
            for layer in edit.layers:
                name = next(sub.name for sub in model.spec.layers[layer].sublayers if edit.site in sub.cell.sites)
                apply(edit, layer, cache.states[layer, name].ssm[row])
                applied[row] += 1
    return forward(model, rest, cache, read=last(rest))[:, 0], applied


def check_counts(variants: Sequence[Variant], applied: Sequence[int]) -> None:
    for variant, count in zip(variants, applied, strict=True):
        if count != variant.planned:
            raise InterventionError(
                f"variant {variant.name} planned {variant.planned} edits, but {count} were applied; "
                f"please report this as a fault of the planner"
            )


def check_alone(model: Model, ids: Tensor, variants: Sequence[Variant], logits: Tensor) -> None:
    """Run a sample again, each variant by itself in a plain pass, and compare probabilities."""
    for i in sample(len(variants)):
        apart = (run_alone(model, ids, variants[i]).softmax(-1) - logits[i].softmax(-1)).abs().max().item()
        if apart > AGREE:
            raise InterventionError(
                f"variant {variants[i].name} run alone differs by {apart:.2g} in a probability from its row in the "
                f"batch; please report this as a fault of the branching batch"
            )


def sample(count: int) -> list[int]:
    """Which of `count` variants are run again: the middles of equal stretches."""
    taken = min(math.ceil(count / ALONE), AT_MOST)
    return [(2 * k + 1) * count // (2 * taken) for k in range(taken)]


def run_alone(model: Model, ids: Tensor, variant: Variant) -> Tensor:
    """One variant by itself in a plain pass, cut in two where it edits a state: ids (1, tokens) -> (vocabulary)."""
    tap = AloneTap(variant)
    if variant.state_after is None:
        return forward(model, ids, tap=tap, read=last(ids))[0, 0]
    cache = new_cache(model.spec, 1, ids.shape[1], model.tokens.dtype, ids.device)
    read, rest = ids.split([variant.state_after + 1, ids.shape[1] - variant.state_after - 1], dim=1)
    forward(model, read, cache, tap=tap, read=last(read))
    return forward(model, rest, cache, read=last(rest))[0, 0]


class AloneTap(Tap):
    """One variant in a plain pass: the definition that the branching batch is held to."""

    def __init__(self, variant: Variant):
        self.variant = variant
        self.costly = frozenset({"pattern"} if variant.touches_pattern else ())

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        for edit in self.variant.interventions:
            if edit.site == site and layer in edit.layers:
                for row in tensor:
                    apply(edit, layer, row)
        return tensor
