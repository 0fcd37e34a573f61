"""DOC"""

from __future__ import annotations

from pydantic import Field

from tokentrail.declare.settings import Section


class ParityStage(Section):
    """The gate: ours against transformers."""

    tolerance: float = Field(default=1e-3, gt=0)
    """Largest difference in any logit, at any position of any prompt, that passes the gate."""
