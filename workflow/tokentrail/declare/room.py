"""What a room of `tokentrail.stages` says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tokentrail.declare.settings import StageSettings


@dataclass(frozen=True)
class Stage:
    """A script that writes one table, or another file."""

    question: str
    """What it answers."""
    after: Literal["weights", "gate", "tables"] = "gate"
    """What it waits for: the weights alone, the parity gate, or other tables."""
    spans_models: bool = False
    """Whether one file is of all models."""
    timed: bool = False
    """Whether it holds or comes from wall-clock times, so that two runs of one input may differ."""
    file: str = ""
    """Name of what it writes, if that is no table."""


@dataclass(frozen=True)
class Room:
    """One stage, or several that belong together."""

    place: int
    """Where it stands among the others, in the report, in the README and in the configuration's documentation."""
    about: str
    """What its settings, under `stages.<room>` in the configuration, are of."""
    stages: Mapping[str, Stage]
    """Its stages by name, which are the names of their scripts and of their tables."""
    settings: type[StageSettings]
    """What the configuration may say of it, and what its scripts are given."""
    heading: str = ""
    """Heading of its section in the report; none if it has no section."""
