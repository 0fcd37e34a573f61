"""What the quantization stages run: every scheme of the configuration on the weights that it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from tokentrail.forward import spec as specs
from tokentrail.quantize.parts import chosen, parts
from tokentrail.quantize.scheme import Scheme

ALONG = {"input": "along the input", "output": "along the output", "flattened": "as stored"}


@dataclass(frozen=True)
class Case:
    """One scheme on one choice of weights of one model."""

    name: str
    scheme: Scheme
    families: str
    tensors: frozenset[str]
    packed: bool

    @property
    def about(self) -> dict[str, Any]:
        """What every table says of the scheme."""
        size = self.scheme.group_size
        return {"scheme": self.name, "bits": self.scheme.bits, "group_size": None if size == "channel" else size}


def cases(spec: specs.Spec, schemes: dict[str, dict[str, Any]]) -> Iterator[Case]:
    """In the order of the configuration; a choice of weights that the model has none of is left out."""
    for name, entry in schemes.items():
        scheme = Scheme(**{field.name: entry[field.name] for field in fields(Scheme)})
        all_of_it = chosen(spec, entry["weights"])
        selections = [entry["weights"]]
        if entry["one_at_a_time"]:
            selections = [[part] for part, tensors in parts(spec).items() if all_of_it.issuperset(tensors)]
        for selection in selections:
            tensors = chosen(spec, selection)
            if tensors:
                yield Case(name, scheme, ", ".join(selection), tensors, entry["packed"])


def method(scheme: Scheme) -> str:
    """What the scheme does beyond one scale that covers each group: `plain`, or what is better about it."""
    better = {
        "asymmetric": not scheme.symmetric,
        "searched scales": scheme.scale == "search",
        "outliers apart": scheme.outliers > 0,
    }
    return ", ".join(name for name, used in better.items() if used) or "plain"


def in_words(scheme: Scheme) -> str:
    """The scheme as a reader needs it: `4 bits, groups of 64 along the input, symmetric, largest weight / 7, ...`."""
    along = ALONG[scheme.grouping]
    group = f"one scale a line {along}" if scheme.group_size == "channel" else f"groups of {scheme.group_size} {along}"
    covered = f"largest weight / {scheme.steps}" if scheme.symmetric else f"range / {2**scheme.bits - 1}"
    if scheme.scale == "search":
        covered = "searched scale"
    kept = [f"largest {scheme.outliers:.2%} kept apart"] if scheme.outliers else []
    balance = "symmetric" if scheme.symmetric else "asymmetric"
    return ", ".join([f"{scheme.bits} bits", group, balance, covered, f"{scheme.scales} scales", *kept])
