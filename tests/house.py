"""Where the stages live: the module that measures each, and the one that draws a chart."""

import importlib
from types import ModuleType

from tokentrail import rooms


def measure_file(stage: str) -> str:
    """File that measures a stage, below the library: a room of one stage has a `measure.py`."""
    room = rooms.room_of(stage)
    name = stage if (rooms.HERE / room / f"{stage}.py").is_file() else "measure"
    return f"stages/{room}/{name}.py"


def measure_module(stage: str) -> ModuleType:
    return importlib.import_module("tokentrail." + measure_file(stage).removesuffix(".py").replace("/", "."))


def chart_module(chart: str) -> ModuleType:
    return importlib.import_module(rooms.module_name(rooms.charts()[chart]))
