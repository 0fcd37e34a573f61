"""The cell table: what a model is made of, in words, from the same data that runs."""

from __future__ import annotations

from tokentrail.forward.kinds.cell import Cell
from tokentrail.forward.spec import Spec, layer_ranges

Row = tuple[str, str, str, str]  # part, cell, layers, detail


def describe(spec: Spec) -> list[dict[str, str]]:
    """The table's rows, with the keys part, cell, layers and detail."""
    scales = dict.fromkeys(sub.scale for layer in spec.layers for sub in layer.sublayers)
    rows = [
        ("size", "layers", "", str(len(spec.layers))),
        ("size", "width", "", str(spec.width)),
        ("size", "vocabulary", "", str(spec.vocabulary)),
        ("size", "context", "", f"{spec.trained_positions} tokens stated"),
        (
            "embed",
            "token table",
            "",
            f"times {spec.embedding_scale:g}" if spec.embedding_scale != 1 else "as stored",
        ),
        _positions(spec),
        ("norm", spec.norm.kind, "", f"eps {spec.norm.eps:g}"),
        *_other_norms(spec),
        ("residual", "update scale", "", ", ".join(f"{scale:g}" for scale in scales)),
        *_side_by_side(spec),
    ]
    where: dict[str, dict[Cell, list[int]]] = {}
    for index, layer in enumerate(spec.layers):
        for sub in layer.sublayers:
            where.setdefault(sub.name, {}).setdefault(sub.cell, []).append(index)
    rows += [
        (name, cell.kind, layer_ranges(at), cell.detail) for name, cells in where.items() for cell, at in cells.items()
    ]
    divisor = f", logits divided by {spec.logit_divisor:g}" if spec.logit_divisor != 1 else ""
    rows.append(("unembed", "tied to the token table" if spec.tied else "own table", "", f"bare product{divisor}"))
    return [dict(zip(("part", "cell", "layers", "detail"), row, strict=True)) for row in rows]


def _positions(spec: Spec) -> Row:
    if spec.learned_positions is not None:
        return ("embed", "positions", "", f"learned table of {spec.learned_positions} rows")
    if any(cell.rotation for cell in spec.cells):
        return ("embed", "positions", "", "none added; queries and keys are rotated (RoPE)")
    return ("embed", "positions", "", "none; order reaches the model through Mamba2 alone")


def _other_norms(spec: Spec) -> list[Row]:
    """Norms around sub-layers that are not the last one's like, before the sub-layer."""
    where: dict[tuple[str, str], list[int]] = {}
    for index, layer in enumerate(spec.layers):
        for sub in layer.sublayers:
            for norm, place, usual in ((sub.norm, "before", spec.norm), (sub.norm_after, "after", None)):
                if norm != usual:
                    said = (norm.kind, f"{place} the {sub.name}, eps {norm.eps:g}") if norm else ("none", place)
                    where.setdefault(said, []).append(index)
    return [("norm", kind, layer_ranges(at), detail) for (kind, detail), at in where.items()]


def _side_by_side(spec: Spec) -> list[Row]:
    where: dict[str, list[int]] = {}
    for index, layer in enumerate(spec.layers):
        for step in layer.steps:
            if len(step) > 1:
                where.setdefault(" and ".join(sub.name for sub in step), []).append(index)
    return [
        ("residual", "side by side", layer_ranges(at), f"{names} read the same stream") for names, at in where.items()
    ]
