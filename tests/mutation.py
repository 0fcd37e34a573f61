"""Import the library anew with one line of it changed, and nothing else touched."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARY = Path(__file__).parents[1] / "workflow"


@contextmanager
def mutated(file: str, old: str, new: str, also: Collection[str] = ()) -> Iterator[None]:
    """Inside the block, `import tokentrail...` gives a fresh library in which `old` in `file` reads `new`.

    `old` must stand exactly once in the file, so that a mutation cannot silently stop applying. The modules `also`,
    which import the library themselves, are fresh as well.
    """
    path = LIBRARY / "tokentrail" / file
    source = path.read_text()
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}"
    name = "tokentrail." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    class Loader(importlib.abc.SourceLoader):
        def get_filename(self, fullname):
            return str(path)

        def get_data(self, path):
            return source.replace(old, new).encode()

        def path_stats(self, path):
            raise OSError  # never use or write bytecode

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname, path_, target=None):
            return importlib.util.spec_from_loader(name, Loader()) if fullname == name else None

    def is_fresh(key: str) -> bool:
        return key.split(".")[0] == "tokentrail" or key in also

    kept = {key: sys.modules.pop(key) for key in filter(is_fresh, list(sys.modules))}
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for key in filter(is_fresh, list(sys.modules)):
            del sys.modules[key]
        sys.modules.update(kept)
