"""What `cost` is asked."""

from __future__ import annotations

from pydantic import Field

from tokentrail.declare.settings import Share, StageSettings


class CostStage(StageSettings):
    """The price and the wait. Both keys are assumptions, and are shown as such."""

    price_per_hour: float = Field(default=1.0, gt=0)
    """Price of the machine, in dollars an hour."""
    occupancy: list[Share] = [1.0, 0.5]
    """Shares of the paid time in which the machine works."""
