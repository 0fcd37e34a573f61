"""What code a stage runs: one hash over its script and the modules of this package that the script imports.

Snakemake notices an edited script, but not an edited module behind it. The hash goes into a rule's params, so
that a stage runs again when what it computes with changes, and not when a module was merely touched or checked out,
or when only what readers read was edited: comments, docstrings, and the descriptions of a table's columns.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = "tokentrail"
ROOT = Path(__file__).resolve().parent.parent
UNUSED = ("__name__ == '__main__'", "'__main__' == __name__", "TYPE_CHECKING")
"""Tests that are false in a job of the workflow."""


def code_hash(script: Path, also: Iterable[str] = (), table: str | None = None) -> str:
    """SHA-256 over `script`, the modules of this package that it imports, directly or not, `also`, and `table`.

    Imports are read, not run. What stands under `if __name__ == "__main__"` is for use by hand, what stands under
    `if TYPE_CHECKING` for readers, and neither counts as imported. `also` names modules that the script imports by a
    name made at run time, `table` the class, as `module:class`, of the one table that it writes: a module may declare
    others, which do not concern it.
    """
    script = Path(script)
    hashed = {"script": module_hash(script)}
    hashed |= {name: module_hash(module_file(name)) for name in closure([*imported(script, ""), *also])}
    if table:
        hashed[table] = table_hash(*table.split(":"))
    return hashlib.sha256(repr(sorted(hashed.items())).encode()).hexdigest()


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
    """Modules of this package that the file at `path`, known as `module`, imports, with their packages.

    A package that looks at its `__path__` finds its modules there: it imports all of them.
    """
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
            case ast.Name(id="__path__"):
                wanted = [f"{module}.{file.stem}" for file in sorted(path.parent.glob("[!_]*.py"))]
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
    """Every node that runs in a workflow: all but the branches under a test of `UNUSED`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) in UNUSED:
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


@functools.cache
def module_hash(path: Path) -> str:
    """SHA-256 of what a module computes: of its statements, without comments, docstrings and layout."""
    return hashlib.sha256(ast.dump(parsed(path)).encode()).hexdigest()


@functools.cache
def table_hash(module: str, name: str) -> str:
    """SHA-256 of what the class `name` of `module` declares: columns, types and checks, without descriptions.

    What it is made with counts as well, name by name, in whichever module of this package it is defined.
    """
    found: dict[tuple[str, str], str] = {}
    waiting = [(module, name)]
    while waiting:
        place = module, name = waiting.pop()
        statement = definitions(module).get(name)
        if place in found or statement is None:
            continue
        if isinstance(statement, ast.ImportFrom):
            defined = next(alias.name for alias in statement.names if name in (alias.name, alias.asname))
            waiting.append((statement.module or "", defined))
        else:
            statement = without_descriptions(statement)
            found[place] = ast.dump(statement)
            waiting += [(module, node.id) for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def without_descriptions(statement: ast.stmt) -> ast.stmt:
    """A class without the first argument of what each column is declared with, `rank = count("rank", min=0)`."""
    statement = copy.deepcopy(statement)
    for each in statement.body if isinstance(statement, ast.ClassDef) else []:
        match each:
            case ast.Assign(value=ast.Call(args=[_, *others]) as declared):
                declared.args = others
    return statement


def definitions(module: str) -> dict[str, ast.stmt]:
    """The names that a module of this package defines or imports, each with its statement; none of another package."""
    file = module_file(module)
    return {name: statement for statement in parsed(file).body for name in names_defined(statement)} if file else {}


def names_defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
        case ast.Assign() | ast.AnnAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The module without its docstrings, and without the texts below attributes, which are docstrings as well."""
    return WithoutDocstrings().visit(ast.parse(path.read_bytes(), filename=str(path)))


class WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node


@functools.cache
def file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
