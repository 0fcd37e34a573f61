"""Every table by its name, found in the rooms: table `name_swaps` is the class `NameSwaps` of its room's `table.py`."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

from tokentrail.declared import declared_in
from tokentrail.errors import TableError

if TYPE_CHECKING:
    from tokentrail.declare.columns import Table


@functools.cache
def schema_of(table: str) -> type[Table]:
    """The class that declares the columns of `table`; only its own module is imported. Raises TableError."""
    declared = declared_in(table)
    if declared is None:
        raise TableError(f"there is no table called {table!r}")
    module, name = declared.split(":")
    return getattr(importlib.import_module(module), name)
