"""The rooms of `tokentrail.stages`, found and not listed: what has a `room.py` is one."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokentrail import stages as house
from tokentrail.declare.room import Room, Stage

if TYPE_CHECKING:
    import polars as pl

    from tokentrail.declare.columns import Table

HERE = Path(house.__file__).parent


@functools.cache
def rooms() -> dict[str, Room]:
    """Every room by its name, in their order."""
    names = sorted(path.parent.name for path in HERE.glob("*/room.py"))
    found = {name: importlib.import_module(f"{house.__name__}.{name}.room").ROOM for name in names}
    return dict(sorted(found.items(), key=lambda entry: entry[1].place))


def stages() -> dict[str, Stage]:
    """Every stage by its name."""
    return {name: stage for room in rooms().values() for name, stage in room.stages.items()}


def tables() -> list[str]:
    """The stages that write tables."""
    return [name for name, stage in stages().items() if not stage.file]


def schemas() -> dict[str, type[Table]]:
    """The declaration of every stage's table, by the stage's name."""
    from tokentrail.tables import schema_of  # takes long to load, and the workflow needs the names alone

    return {name: schema_of(name) for name in tables()}


def timed() -> list[str]:
    """The tables that hold or come from wall-clock times: the only ones in which two runs of one input may differ."""
    return [name for name in tables() if stages()[name].timed]


def room_of(stage: str) -> str:
    """Name of the room that a stage is in. Raises KeyError if there is no such stage."""
    return {name: room for room, declared in rooms().items() for name in declared.stages}[stage]


def charts() -> dict[str, Path]:
    """The modules that draw charts, by the charts' names: a room's `chart.py` draws the one that bears its name."""
    return {
        path.parent.name if path.stem == "chart" else path.stem.removeprefix("chart_"): path
        for name in rooms()
        for path in sorted((HERE / name).glob("chart*.py"))
    }


def module_name(path: Path) -> str:
    """Name of the module that lies at `path`."""
    return ".".join([house.__name__, *path.relative_to(HERE).with_suffix("").parts])


def sections() -> dict[str, str]:
    """The rooms that have a section in the report, each with its heading."""
    return {name: room.heading for name, room in rooms().items() if room.heading}


def views() -> dict[str, Callable[[dict[str, pl.DataFrame], dict[str, Any]], Any]]:
    """What makes a section's template its rows and sentences, from the tables and settings: its room's `view`."""
    files = {name: HERE / name / "section.py" for name in sections()}
    modules = {name: importlib.import_module(module_name(file)) for name, file in files.items() if file.is_file()}
    return {name: module.view for name, module in modules.items() if hasattr(module, "view")}
