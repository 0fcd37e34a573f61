"""What `merges` is asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from tokentrail.declare.settings import EveryPromptStage


class MergesStage(EveryPromptStage):
    """Byte-level BPE, replayed."""

    words: list[Annotated[str, StringConstraints(min_length=1, max_length=200)]] = []
    """Words and numbers to replay, beside the prompts; a leading space is part of a word."""
