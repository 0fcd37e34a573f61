"""Faults that are planted in the running library for one test. Each names the object that it changes: what is only
rewritten keeps its faults, and a fault whose object is gone fails where it is planted.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

import pytest
from tokentrail.forward import frame
from tokentrail.forward.families import FAMILIES
from tokentrail.forward.frame import Model
from tokentrail.forward.reading.recipe import Recipe
from tokentrail.forward.registry import RUNS
from tokentrail.forward.spec import Cell, Spec
from tokentrail.weights import load

Plant = Callable[[pytest.MonkeyPatch], None]


class Fault(NamedTuple):
    what: str
    variant: str  # a random model that has the part
    plant: Plant


def instead(owner: Any, name: Any, make: Callable[[Any], Any]) -> Plant:
    """What `make` gives of it stands in place of an attribute, or of an entry of a mapping."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        if isinstance(owner, MutableMapping):
            patch.setitem(owner, name, make(owner[name]))
        else:
            patch.setattr(owner, name, make(getattr(owner, name)))

    return plant


def cells(kind: type[Cell], change: Callable[[Any], Cell]) -> Plant:
    """Every cell of a kind runs with the numbers that `change` gives of it."""
    return instead(RUNS, kind, lambda runs: runs._replace(forward=given_other(runs.forward, 2, change)))


def weights(kind: type[Cell], change: Callable[[Any], Any]) -> Plant:
    """Every cell of a kind runs with the weights that `change` gives of its own."""
    return instead(RUNS, kind, lambda runs: runs._replace(forward=given_other(runs.forward, 1, change)))


def given_other(function: Callable, at: int, change: Callable[[Any], Any]) -> Callable:
    """The function with its argument number `at` changed."""
    return lambda *given: function(*given[:at], change(given[at]), *given[at + 1 :])


def specs(change: Callable[[Spec], Spec]) -> Plant:
    """A config.json is read as another Spec."""
    return instead(load, "read_spec", lambda read: lambda config: change(read(config)))


def models(change: Callable[[Model], Model]) -> Plant:
    """A model is put together otherwise."""
    return instead(load, "assemble", lambda assemble: lambda *given: change(assemble(*given)))


def norms(change: Callable[[Any, Any], tuple[Any, Any]]) -> Plant:
    """Every norm of the stream is taken with other weights and numbers."""
    return instead(frame, "norm", lambda norm: lambda x, weights, spec: norm(x, *change(weights, spec)))


def recipes(model_type: str, change: Callable[[str, Recipe], dict[str, Recipe]]) -> Plant:
    """A family makes our tensors otherwise: `change` gives what stands in place of one of them, by name."""

    def changed(of_family: Callable) -> Callable:
        def recipes(spec: Spec, stored: set[str]) -> tuple[dict[str, Recipe], set[str]]:
            made_from, useless = of_family(spec, stored)
            return {name: made for one in made_from.items() for name, made in change(*one).items()}, useless

        return recipes

    return instead(FAMILIES, model_type, lambda family: family._replace(recipes=changed(family.recipes)))


def recipe(model_type: str, end: str, change: Callable[[Recipe], Recipe]) -> Plant:
    """A family makes the tensors whose names end so otherwise."""
    return recipes(model_type, lambda name, made: {name: change(made) if name.endswith(end) else made})


def in_order(*places: int) -> Callable[[Recipe], Recipe]:
    """A recipe with its parts in another order."""
    return lambda made: made._replace(parts=tuple(made.parts[place] for place in places))
