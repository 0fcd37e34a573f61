"""What each stage is given of the configuration."""

from __future__ import annotations

from typing import Any

from tokentrail.config.run import Config
from tokentrail.errors import ConfigError


def prompts_for(config: Config, stage: str) -> dict[str, dict[str, str]]:
    """The prompts that `stage` runs on, as plain data."""
    chosen = getattr(getattr(config.stages, stage, None), "prompts", None)
    names = config.prompts if chosen is None else chosen
    return {name: config.prompts[name].model_dump() for name in names}


def ablation_settings(config: Config) -> dict[str, Any]:
    """The ablations' prompts, and of the other prompts those that `mean` and `resample` take values from."""
    chosen, prompts = config.stages.ablations, prompts_for(config, "ablations")
    sources = {prompt: source for prompt, source in chosen.resample_from.items() if prompt in prompts}
    references = (chosen.references or list(config.prompts)) if "mean" in chosen.operations else []
    others = {name: config.prompts[name].text for name in (*references, *sources.values())}
    return {
        "prompts": prompts,
        "operations": list(chosen.operations),
        "references": references,
        "resample_from": sources,
        "texts": others,
        "memory_mb": config.memory_mb,
    }


def quantization_settings(config: Config, stage: str, model: str) -> dict[str, Any]:
    """What the quality, the times and the errors of quantization each use; no schemes for a model that is left out."""
    chosen = config.stages.quantization
    wanted = chosen.models is None or model in chosen.models
    schemes = {name: scheme.model_dump() for name, scheme in chosen.schemes.items() if wanted}
    match stage:
        case "quantization_quality":
            name = chosen.prompt or next(iter(config.prompts))
            return {
                "schemes": schemes,
                "prompts": {name: config.prompts[name].model_dump()},
                **chosen.model_dump(include={"passages", "window", "bootstrap"}),
            }
        case "quantization_timing":
            packed = {name: scheme for name, scheme in schemes.items() if scheme["packed"]}
            return {"schemes": packed, **chosen.times.model_dump()}
    return {"schemes": {name: schemes[name] for name in chosen.errors if wanted}}


def settings(config: Config, stage: str, model: str | None = None) -> dict[str, Any]:
    """Exactly the entries of the configuration that a stage uses, as plain dicts, lists and scalars."""
    common: dict[str, Any] = {}
    if model is not None:
        common = {"model": model, "bos": config.models[model].bos, "device": config.device}
    match stage:
        case "weights":
            chosen = config.models[model]
            return {
                "model": model,
                "source": chosen.source.model_dump(),
                "license": chosen.license,
                "lock_file": config.lock_file,
                "changes": chosen.config,
            }
        case "cells" | "census":
            return {"model": model}
        case "parity":
            return common | {
                "prompts": prompts_for(config, stage),
                "tolerance": config.stages.parity.tolerance,
            }
        case "parity_gate":
            return {"model": model}
        case "next_token":
            return common | {"prompts": prompts_for(config, stage), "top_k": config.stages.next_token.top_k}
        case "name_swaps":
            swaps = config.stages.name_swaps
            return common | {"sets": {k: v.model_dump() for k, v in swaps.sets.items()}, "batch": swaps.batch}
        case "name_swaps_summary":
            return {"model": model, "bootstrap": config.stages.name_swaps.bootstrap.model_dump()}
        case "reproduction":
            if not config.ledgers:  # nothing is judged, whatever is measured
                return {"ledgers": [], "targets": {}, "schemes": {}}
            return {
                "ledgers": list(config.ledgers),
                "targets": {name: prompt.target for name, prompt in config.prompts.items()},
                "schemes": {k: v.model_dump() for k, v in config.stages.quantization.schemes.items()},
            }
        case "ablations":
            return common | ablation_settings(config)
        case "filler_sweep" | "long_range":
            return common | config.stages.filler.model_dump()
        case "patching":
            chosen = config.stages.patching
            used = {
                name: config.prompts[name].model_dump() for pair in chosen.pairs for name in pair.model_dump().values()
            }
            return common | chosen.model_dump() | {"prompts": used, "memory_mb": config.memory_mb}
        case "sink":
            prompts = prompts_for(config, stage)
            return common | {"prompts": prompts, "replacement": config.stages.sink.replacement}
        case "cache":
            chosen = config.stages.cache
            prompts = prompts_for(config, stage)
            return common | {"prompts": prompts, "steps": chosen.steps, "pieces": list(chosen.pieces)}
        case "timing":
            return common | config.stages.timing.model_dump() | {"memory_mb": config.memory_mb}
        case "timing_summary":
            return {"model": model}
        case "machine":
            return {"model": model, "device": config.device}
        case "cost":
            return {"model": model} | config.stages.cost.model_dump()
        case "quantization_quality" | "quantization_timing" | "quantization_error":
            return common | quantization_settings(config, stage, model)
        case "quantization":
            return {"model": model}
        case "distribution" | "positions":
            return common | getattr(config.stages, stage).model_dump() | {"prompts": prompts_for(config, stage)}
        case "merges":
            return common | {"prompts": prompts_for(config, stage), "words": config.stages.merges.words}
        case "geometry":
            return common | config.stages.geometry.model_dump()
        case "arithmetic":
            return {"model": model} | config.stages.arithmetic.model_dump()
        case (
            "tokens" | "parity_layers" | "lens" | "residual" | "attribution" | "mixing" | "attention" | "block" | "mlp"
        ):
            return common | {"prompts": prompts_for(config, stage)}
        case "charts":
            models = {k: {"label": m.label, "weights_note": m.weights_note} for k, m in config.models.items()}
            return {"models": models}
        case "report":
            models = settings(config, "charts")["models"]
            return {
                "models": {k: m | {"training_note": config.models[k].training_note} for k, m in models.items()},
                "fillers": dict(config.stages.filler.fillers),
                "title": config.title,
                "run": config.run,
                "ledgers": list(config.ledgers),
                "prompts": prompts_for(config, stage),
                "experiments": {k: v.model_dump() for k, v in config.stages.distribution.experiments.items()},
            }
    raise ConfigError(f"there is no stage called {stage!r}")
