"""Which table and rows a published quantity is: one module a subject.

Each module has a dict FIGURES from a pattern, which must match a whole quantity, to a function of the run, the figure
and the pattern's groups. The function returns a number in the table's unit (shares, bytes, nats), text, a list, or
True and False, and raises NotRun if the run does not hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tokentrail.stages.reproduction.figures import (
    anatomy,
    answers,
    attention,
    columns,
    decoding,
    depth,
    parts,
    quantization,
    sizes,
    text,
)
from tokentrail.stages.reproduction.ledger import Figure
from tokentrail.stages.reproduction.run import NotRun, Run

Selector = Callable[..., Any]
SUBJECTS = (text, answers, depth, attention, parts, anatomy, sizes, decoding, quantization, columns)
FIGURES: dict[re.Pattern[str], Selector] = {
    re.compile(pattern): select for subject in SUBJECTS for pattern, select in subject.FIGURES.items()
}


def measured(run: Run, figure: Figure) -> Any:
    """What the run measured for a figure. Raises NotRun, with the reason, if it did not."""
    for pattern, select in FIGURES.items():
        if found := pattern.fullmatch(figure.quantity):
            return select(run, figure, *found.groups())
    why = "" if figure.needs_weights else ", which needs no model; the tests of this workflow compute it"
    raise NotRun(f"no stage measures {figure.quantity}{why}")
