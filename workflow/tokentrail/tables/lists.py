"""The tables of a run by name: those that a run makes, and what is special about some of them.

No stage imports this module: it would run again whenever a table is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokentrail import rooms
from tokentrail.tables.registry import schema_of

if TYPE_CHECKING:
    from tokentrail.declare.columns import Table

TABLES: dict[str, type[Table]] = {name: schema_of(name) for name in rooms.tables()}
TIMED = tuple(name for name in TABLES if rooms.stages()[name].timed)
"""The tables that hold or come from wall-clock times: the only ones in which two runs of one input may differ."""
