"""What `reproduction` is given."""

from __future__ import annotations

from typing import Any

from tokentrail.declare.settings import Configuration, StageSettings


class ReproductionStage(StageSettings):
    """The published figures, and the schemes that those of quantization may be of."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        if not config.ledgers:  # nothing is judged, whatever is measured
            return {"ledgers": [], "schemes": {}}
        return {
            "ledgers": list(config.ledgers),
            "schemes": {name: scheme.model_dump() for name, scheme in config.stages.quantization.schemes.items()},
        }
