"""What `weights` is given."""

from __future__ import annotations

from typing import Any

from tokentrail.declare.settings import Configuration, StageSettings
from tokentrail.weights.sources import module_of


class WeightsStage(StageSettings):
    """Where a model's files come from, and where their hashes are kept."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        chosen = config.models[model]
        return {
            "model": model,
            "source": chosen.source.model_dump(),
            "license": chosen.license,
            "lock_file": config.lock_file,
            "changes": chosen.config,
        }

    def code(self, config: Configuration, model: str | None) -> list[str]:
        """Of all kinds of source, the model's own."""
        return [module_of(config.models[model].source.kind)]
