"""What a model or its tokenizer makes impossible is a row with a reason, and the stage goes on with the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tokentrail.errors import PromptError, QuantizationError
from tokentrail.tables import NOT_MEASURED


@contextlib.contextmanager
def asked(refused: list[dict[str, Any]], **what: Any) -> Iterator[None]:
    """Adds a row to `refused` if what the block asks of the model is impossible for it.

    `what` are the columns of the stage's table that say what was asked. Rows that the block makes must be complete
    before they are kept: half of what was asked is not measured.
    """
    try:
        yield
    except (PromptError, QuantizationError) as error:
        refused.append(what | {NOT_MEASURED: str(error)})
