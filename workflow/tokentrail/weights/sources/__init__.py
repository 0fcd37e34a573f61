"""Where a model's files come from. A kind of source is a file here that bears its name; nothing lists them."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import StringConstraints

from tokentrail.declare.settings import Section

if TYPE_CHECKING:
    from tokentrail.weights.layout import Fetched
    from tokentrail.weights.lock import Pins

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Source(Section):
    """What the configuration says of one kind of source, and what follows from it."""

    if TYPE_CHECKING:  # every kind declares these itself, in its own words
        kind: str
        file: str
        sha256: dict[str, Sha256]

    fixed: ClassVar[bool] = True
    """Whether the same source always gives the same files, so that those cached need not be asked for again."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Its name in the lock file: kind, source and revision as configured, `<kind>:<source>@<revision>`."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """Its name in a table, which holds no path of a machine."""

    def watched(self) -> list[Path]:
        """The files on this machine that it is made of, to notice when one changes."""
        return []

    @abstractmethod
    def fetch(self, pins: Pins) -> Fetched:
        """The model's files, held to their pins. Raises WeightsError for whatever is missing, damaged or refused."""


def module_of(kind: str) -> str:
    """Name of the module of a kind of source."""
    return f"{__name__}.{kind}"


def source_of(settings: dict[str, Any]) -> Source:
    """A source of the configuration that was made a dict. Raises ModuleNotFoundError for a kind that there is not."""
    return importlib.import_module(module_of(settings["kind"])).SOURCE.model_validate(settings)
