"""Interventions as data: a site, layers, heads, positions, and an operation. A list of them is one variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from tokentrail.errors import InterventionError
from tokentrail.forward import spec as specs

SITES: dict[str, tuple[str, ...]] = {  # the sites that can be edited, and the axes of one row of their tensors
    "resid_pre": ("positions", "channels"),
    "mixer_out": ("positions", "channels"),
    "ffn_out": ("positions", "channels"),
    "z": ("heads", "positions", "channels"),
    "ssm_y": ("positions", "heads", "channels"),
    "ssm_state": ("heads", "channels", "state"),  # after the one position that is named
    "pattern": ("heads", "queries", "positions"),  # positions are keys
}
VALUES = ("mean", "resample", "replace")  # operations that put values of other runs in place
ON_KEYS = ("mask", "drop_value", "renormalise")


def operations_at(site: str) -> tuple[str, ...]:
    """The operations that a site can take."""
    return ("zero", "scale", *(ON_KEYS if site == "pattern" else VALUES))


@dataclass(frozen=True)
class Operation:
    """What to do.

    `zero`, `scale` (by `factor`), or `mean`, `resample`, `replace`, which all put `values[site, layer]` in place
    and differ in where these come from: a mean over reference prompts, another prompt, or any other run. Values
    have the shape of one row of the site, or one that broadcasts to it.

    On the weights of a key position: `mask` takes the key out, as if it were not there; `drop_value` keeps the
    weights and zeroes the value that the position hands over; `renormalise` keeps the value and only scales the
    other weights up, as the mask would. Masking is the other two at once.
    """

    kind: str
    factor: float = 1.0
    values: Mapping[tuple[str, int], Tensor] = field(default_factory=dict, hash=False, compare=False)


@dataclass(frozen=True)
class Intervention:
    site: str
    layers: tuple[int, ...]
    operation: Operation
    heads: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None

    @property
    def planned(self) -> int:
        """Edits that one pass must apply: one for each layer."""
        return len(self.layers)


@dataclass(frozen=True)
class Variant:
    """One changed pass."""

    name: str
    interventions: tuple[Intervention, ...]

    @property
    def first_layer(self) -> int:
        """Where its row leaves the clean one; a variant that changes nothing is a row of its own from the start."""
        return min((layer for edit in self.interventions for layer in edit.layers), default=0)

    @property
    def planned(self) -> int:
        return sum(edit.planned for edit in self.interventions)

    @property
    def touches_pattern(self) -> bool:
        return any(edit.site == "pattern" for edit in self.interventions)

    @property
    def state_after(self) -> int | None:
        """The position whose states are edited, None for a variant that edits no state."""
        return next((edit.positions[0] for edit in self.interventions if edit.site == "ssm_state"), None)


def check(variant: Variant, spec: specs.Spec, tokens: int) -> None:
    """Raises InterventionError, naming what the model lacks or the site cannot take, before anything runs."""
    if not variant.interventions or not all(edit.layers for edit in variant.interventions):
        raise InterventionError(f"variant {variant.name} changes nothing; give it a site and layers")
    for edit in variant.interventions:
        check_site(variant.name, edit)
        for layer in edit.layers:
            check_layer(variant.name, edit, layer, spec)
        outside = [p for p in edit.positions or () if not 0 <= p < tokens]
        if outside:
            raise InterventionError(
                f"variant {variant.name} edits position {outside[0]}, but the prompt has {tokens} tokens; "
                f"positions are counted from 0"
            )
    check_states(variant, tokens)


def check_states(variant: Variant, tokens: int) -> None:
    """States are edited between two tokens, so that a pass is cut in two there."""
    places = {edit.positions for edit in variant.interventions if edit.site == "ssm_state"}
    if not places:
        return
    if len(places) > 1 or any(edit.site != "ssm_state" for edit in variant.interventions):
        raise InterventionError(
            f"variant {variant.name} edits states and something else, or states after several positions; make a "
            f"variant of each"
        )
    if places == {None} or len(next(iter(places))) != 1 or variant.state_after == tokens - 1:
        raise InterventionError(
            f"variant {variant.name} edits ssm_state; name the one position, before the last of {tokens}, after which"
        )


def check_site(name: str, edit: Intervention) -> None:
    if edit.site not in SITES:
        sites = ", ".join(SITES)
        raise InterventionError(f"variant {name} edits {edit.site!r}; the sites that can be edited are {sites}")
    kind, allowed = edit.operation.kind, operations_at(edit.site)
    if kind not in allowed:
        raise InterventionError(f"variant {name} asks for {kind!r} at {edit.site}, which takes {', '.join(allowed)}")
    if edit.heads is not None and "heads" not in SITES[edit.site]:
        raise InterventionError(f"variant {name} names heads at {edit.site}, which has none; use z or ssm_y")
    if kind in ON_KEYS and edit.positions is None:
        raise InterventionError(f"variant {name} asks for {kind} at pattern; name the key positions")


def check_layer(name: str, edit: Intervention, layer: int, spec: specs.Spec) -> None:
    if not 0 <= layer < len(spec.layers):
        raise InterventionError(
            f"variant {name} edits layer {layer}, but the model has {len(spec.layers)} layers, counted from 0"
        )
    if edit.site not in spec.layers[layer].sites:
        raise InterventionError(f"variant {name} edits {edit.site} at layer {layer}, which has no such site")
    if edit.heads is not None:
        heads = spec.layers[layer].mixer.heads
        outside = [h for h in edit.heads if not 0 <= h < heads]
        if outside:
            raise InterventionError(
                f"variant {name} edits head {outside[0]} at layer {layer}, which has {heads} heads, counted from 0"
            )
    if edit.operation.kind in VALUES and (edit.site, layer) not in edit.operation.values:
        raise InterventionError(f"variant {name} has no values for {edit.site} at layer {layer} to put in place")
