"""What code a stage runs: one hash over its script and the modules of this package that the script imports.

Snakemake notices an edited script, but not an edited module behind it. The hash goes into a rule's params, so
that a stage runs again when its code changes, and not when a module was merely touched or checked out.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = "tokentrail"
ROOT = Path(__file__).resolve().parent.parent


def code_hash(script: Path, also: Iterable[str] = ()) -> str:
    """SHA-256 over `script`, the modules of this package that it imports, directly or not, and `also`.

    Imports are read, not run. What stands under `if __name__ == "__main__"` is for use by hand and does not
    count as imported. `also` names modules that the script imports by a name made at run time.
    """
    script = Path(script)
    modules = closure([*imported(script, ""), *also])
    parts = [("script", script)] + [(name, module_file(name)) for name in sorted(modules)]
    digest = hashlib.sha256()
    for name, path in parts:
        digest.update(f"{name} {file_hash(path)}\n".encode())
    return digest.hexdigest()


def constant(path: Path, name: str):
    """The literal that the module at `path` assigns to `name`, read without running it; None without one."""
    for node in parsed(Path(path)).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets) and node.value:
            return ast.literal_eval(node.value)
    return None


def closure(names: Iterable[str]) -> set[str]:
    """The modules in `names` and every module of this package that they import, directly or not."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += imported(module_file(name), name)
    return found


@functools.cache
def imported(path: Path, module: str) -> tuple[str, ...]:
    """Modules of this package that the file at `path`, known as `module`, imports, with their packages."""
    base = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: dict[str, None] = {}
    for node in reachable(parsed(path)):
        match node:
            case ast.Import(names=names):
                wanted = [alias.name for alias in names]
            case ast.ImportFrom(module=source, names=names, level=level):
                if level:
                    above = base.split(".")[: len(base.split(".")) - level + 1]
                    source = ".".join([*above, source] if source else above)
                wanted = [source, *(f"{source}.{alias.name}" for alias in names)]
            case _:
                continue
        for name in wanted:
            found.update(dict.fromkeys(with_parents(name)))
    return tuple(found)


def with_parents(name: str) -> Iterator[str]:
    """`name` and the packages that it lies in, as far as they are modules of this package."""
    parts = name.split(".")
    if parts[0] != PACKAGE:
        return
    for end in range(1, len(parts) + 1):
        candidate = ".".join(parts[:end])
        if module_file(candidate) is not None:
            yield candidate


@functools.cache
def module_file(name: str) -> Path | None:
    """The file of a module of this package; None if the name is no module but a function or a class."""
    path = ROOT.joinpath(*name.split("."))
    for candidate in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if candidate.is_file():
            return candidate
    return None


def reachable(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs in a workflow: all but the branch under `__name__ == "__main__"`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and by_hand_only(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def by_hand_only(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and ast.unparse(test) in (
        "__name__ == '__main__'",
        "'__main__' == __name__",
    )


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


@functools.cache
def file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
