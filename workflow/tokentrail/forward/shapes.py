"""The names and shapes of the tensors that a model needs.

The names are ours, not a checkpoint's: `tokens`, `positions`, `layers.3.mixer.qkv.weight`, `final_norm.weight`,
`head.weight`. A family says which checkpoint tensors each is made from.
"""

from __future__ import annotations

from tokentrail.forward import spec as specs


def shapes(spec: specs.Spec) -> dict[str, tuple[int, ...]]:
    """Every tensor that the model needs, by our name, with its shape."""
    out: dict[str, tuple[int, ...]] = {"tokens": (spec.vocabulary, spec.width)}
    if spec.learned_positions is not None:
        out["positions"] = (spec.learned_positions, spec.width)
    for i, layer in enumerate(spec.layers):
        for sub in layer.sublayers:
            parts = {
                f"{sub.name}_norm": sub.norm.shapes(spec.width) if sub.norm else {},
                sub.name: sub.cell.shapes(spec.width),
                f"{sub.name}_norm_after": sub.norm_after.shapes(spec.width) if sub.norm_after else {},
            }
            out |= {
                f"layers.{i}.{part}.{name}": shape for part, inner in parts.items() for name, shape in inner.items()
            }
    out |= {f"final_norm.{name}": s for name, s in spec.norm.shapes(spec.width).items()}
    if not spec.tied:
        out["head.weight"] = (spec.vocabulary, spec.width)
    return out
