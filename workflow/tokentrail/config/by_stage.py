"""What each stage, and the pages, are given of the configuration."""

from __future__ import annotations

from typing import Any

from tokentrail.config.run import Config
from tokentrail.declare.settings import StageSettings
from tokentrail.errors import ConfigError
from tokentrail.rooms import room_of, rooms, stages


def settings(config: Config, stage: str, model: str | None = None) -> dict[str, Any]:
    """Exactly the entries of the configuration that a stage uses, as plain dicts, lists and scalars.

    Raises ConfigError if there is no such stage.
    """
    return of_room(config, stage).given(config, stage, model)


def code(config: Config, stage: str, model: str | None = None) -> list[str]:
    """The modules that a stage's script imports by a name made at run time. Raises as `settings`."""
    return of_room(config, stage).code(config, model)


def of_room(config: Config, stage: str) -> StageSettings:
    """What the configuration says of the room that a stage is in. Raises as `settings`."""
    if stage not in stages():
        raise ConfigError(f"there is no stage called {stage!r}")
    room = room_of(stage)
    return getattr(config.stages, room, None) or rooms()[room].settings()


def chart_settings(config: Config) -> dict[str, Any]:
    """What every chart is given: how the models are named."""
    return {"models": {k: {"label": m.label, "weights_note": m.weights_note} for k, m in config.models.items()}}


def report_settings(config: Config) -> dict[str, Any]:
    """What the report is given."""
    models = chart_settings(config)["models"]
    return {
        "models": {k: m | {"training_note": config.models[k].training_note} for k, m in models.items()},
        "fillers": dict(config.stages.filler.fillers),
        "title": config.title,
        "run": config.run,
        "ledgers": list(config.ledgers),
        "prompts": config.prompts_named(config.prompts),
        "experiments": {k: v.model_dump() for k, v in config.stages.distribution.experiments.items()},
    }
