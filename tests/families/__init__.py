"""What each family is tested with, in a file of its own: nothing lists them."""

from __future__ import annotations

import importlib
import pkgutil

from families.cases import Cases

CASES: dict[str, Cases] = {
    found.name: module.CASES
    for found in pkgutil.iter_modules(__path__)
    if hasattr(module := importlib.import_module(f"{__name__}.{found.name}"), "CASES")
}
"""By the name of the family's file."""

VARIANTS: dict[str, dict] = {name: config for cases in CASES.values() for name, config in cases.variants.items()}
FULL_SHAPES: dict[str, dict] = {name: config for cases in CASES.values() for name, config in cases.full_shapes.items()}
