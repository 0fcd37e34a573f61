"""What `next_token` is asked."""

from __future__ import annotations

from pydantic import Field

from tokentrail.declare.settings import EveryPromptStage


class NextTokenStage(EveryPromptStage):
    """The first tokens of the distribution."""

    top_k: int = Field(default=10, ge=1)
    """Rows for each prompt; the target is added if it is not among them."""
