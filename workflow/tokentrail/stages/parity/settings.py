"""What `parity` and `parity_layers` are asked."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tokentrail.declare.settings import Configuration, EveryPromptStage


class ParityStage(EveryPromptStage):
    """The gate: ours against transformers."""

    tolerance: float = Field(default=1e-3, gt=0)
    """Largest difference in any logit, at any position of any prompt, that passes the gate."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        match stage:
            case "parity":
                return super().given(config, stage, model)
            case "parity_layers":
                return EveryPromptStage().given(config, stage, model)
        return {"model": model}
