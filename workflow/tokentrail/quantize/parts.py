"""Which weights of a model a scheme is applied to: every matrix that a product or a lookup reads.

Norms, biases and Mamba2's convolution, whose rows are as short as its window, are never quantized.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokentrail.errors import QuantizationError
from tokentrail.forward import spec as specs
from tokentrail.forward.shapes import shapes

TOKENS, HEAD = "tokens", "head.weight"
"""The two uses of the token table, by the tensors that they read; a tied model has one tensor for both."""
SETS = ("all", "compute", "tokens.input", "tokens.output")


def parts(spec: specs.Spec) -> dict[str, tuple[str, ...]]:
    """The parts that a model has, in the order of the pass, and the tensors of each.

    `tokens` stands for both uses of a tied table.
    """
    found: dict[str, list[str]] = {TOKENS: [TOKENS, HEAD] if spec.tied else [TOKENS]}
    if spec.learned_positions is not None:
        found["positions"] = ["positions"]
    in_layers = [(i, sub) for i, layer in enumerate(spec.layers) for sub in layer.sublayers]
    for i, sub in sorted(in_layers, key=lambda one: not one[1].cell.mixes):  # the mixers first
        for name in sub.cell.matrices:
            found.setdefault(f"{sub.cell.part}.{name}", []).append(f"layers.{i}.{sub.name}.{name}.weight")
    if not spec.tied:
        found["head"] = [HEAD]
    return {part: tuple(names) for part, names in found.items()}


def chosen(spec: specs.Spec, selection: Iterable[str]) -> frozenset[str]:
    """The tensors that a selection names: parts, `all`, `compute` (the layers' matrices), or one use of a tied table.

    Parts that other models have and this one has not are left out. Raises QuantizationError for an unknown name.
    """
    have = parts(spec)
    found: set[str] = set()
    for name in selection:
        match name:
            case "all":
                found.update(*have.values())
            case "compute":
                found.update(n for names in have.values() for n in names if n.startswith("layers."))
            case "tokens.input" | "tokens.output":
                found.update({TOKENS if name == "tokens.input" else HEAD} if spec.tied else ())
            case _ if name in have:
                found.update(have[name])
            case _ if name not in PARTS:
                raise QuantizationError(
                    f"weights names {name!r}, which no model has; choose among {', '.join((*PARTS, *SETS))}"
                )
    return frozenset(found)


PARTS = (
    TOKENS,
    "positions",
    *(f"{kind.part}.{name}" for kind in specs.KINDS for name in kind.matrices),
    "head",
)


def quantizable(spec: specs.Spec) -> dict[str, tuple[int, int]]:
    """Every matrix that a scheme can be applied to, with its shape; a tied head is the token table's."""
    have = shapes(spec)
    return {name: have[TOKENS if name == HEAD and spec.tied else name] for name in sorted(chosen(spec, ["all"]))}


def splits(spec: specs.Spec, tensors: frozenset[str]) -> bool:
    """Whether quantizing these tensors alone parts the two uses of a tied table."""
    return spec.tied and (TOKENS in tensors) != (HEAD in tensors)
