"""The floors of the library, and the imports between them, read from the code.

A module imports only from its own floor or from floors below it, and nothing imports in a circle. `docs.py` draws the
picture in `CONTRIBUTING.md` from this; a test holds the code to it.
"""

from __future__ import annotations

import functools
from pathlib import Path

from tokentrail.provenance import PACKAGE, ROOT, imported

FLOORS: dict[int, dict[str, str]] = {
    7: {
        "report": "the page",
        "config": "the configuration of a run",
        "training": "how the reference models were made",
        "by_hand": "scripts from a shell",
        "remainder": "a report on the rest",
        "compare": "two runs, table by table",
        "docs": "generated documentation",
        "architecture": "this picture",
    },
    6: {"rooms": "finds the rooms", "stages": "one room a stage: settings, table, measure, chart, section"},
    5: {
        "measure": "answers, prompts, intervals, the reference",
        "charts": "theme, axes, marks",
        "wording": "numbers and rules in words",
    },
    4: {"intervene": "interventions as data, the planner, the branching batch"},
    3: {"quantize": "schemes, packing, packed cells"},
    2: {"weights": "sources, hashing, loading, tokenizers"},
    1: {"forward": "the frame, the cells, the families, the caches"},
    0: {
        "declare": "what stages are declared with",
        "tables": "tables as files",
        "stage": "a job",
        "forkserver": "what forks for each job",
        "provenance": "what code a stage runs",
        "errors": "errors",
        "allocator": "memory that is kept",
        "templates": "places in a text",
        "bytelevel": "bytes as letters",
        "runlock": "one run at a time",
        "declared": "where a table is declared",
        "examples": "the arithmetic, as examples",
    },
}
"""Every part of the library by its floor, and what lives there."""


def floor_of(part: str) -> int:
    """The floor of a part. Raises KeyError if it has none."""
    return {name: floor for floor, parts in FLOORS.items() for name in parts}[part]


def part_of(module: str) -> str:
    """`tokentrail.forward.frame` is in `forward`."""
    return module.split(".")[1]


@functools.cache
def imports() -> dict[str, frozenset[str]]:
    """Each module of the library, and the modules of the library that it imports; their packages left out."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        module = name_of(path)
        packages = {module, *(other for other in imported(path, module) if is_package(other))}
        found[module] = frozenset(set(imported(path, module)) - packages - {PACKAGE})
    return found


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_package(module: str) -> bool:
    return ROOT.joinpath(*module.split("."), "__init__.py").is_file()


def between_parts() -> set[tuple[str, str]]:
    """Which part imports from which other."""
    pairs = {
        (part_of(module), part_of(other))
        for module, others in imports().items()
        for other in others
        if module != PACKAGE
    }
    return {(one, other) for one, other in pairs if one != other}


def picture() -> str:
    """The floors as a Mermaid flowchart: an arrow for each part that imports from another one."""
    lines = ["```mermaid", "flowchart TB"]
    for floor, parts in FLOORS.items():
        lines.append(f'  subgraph floor{floor}["floor {floor}"]')
        lines += [f'    {name}["<b>{name}</b><br>{what}"]' for name, what in parts.items() if floor or drawn(name)]
        lines.append("  end")
    ordered = sorted(between_parts(), key=lambda pair: (-floor_of(pair[0]), pair))
    lines += [f"  {one} --> {other}" for one, other in ordered if drawn(one) and drawn(other)]
    return "\n".join([*lines, "```"]) + "\n"


def drawn(part: str) -> bool:
    """Of the ground floor, which everything stands on, only what stages are declared with is drawn."""
    return floor_of(part) > 0 or part in ("declare", "tables")
