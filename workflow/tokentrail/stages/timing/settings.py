"""What `timing`, `timing_summary` and `machine` are asked."""

from __future__ import annotations

from typing import Any, Literal

from tokentrail.declare.settings import Configuration, Count, ModelStage


class TimingStage(ModelStage):
    """Wall-clock times. The job runs alone, on all cores that snakemake was given."""

    decode_contexts: list[Count] = [8, 128, 512, 1000]
    """Tokens in the cache before decoding, for one row."""
    batches: list[Count] = [1, 2, 4, 8]
    """Rows of batched decoding."""
    batch_context: Count = 64
    """Tokens in the cache of each row of a batch."""
    prefill_lengths: list[Count] = [8, 32, 128, 512, 1000]
    """Tokens of an input that is read at once."""
    rounds: Count = 7
    """Rounds in each of the two blocks; every round times every case once, in a shuffled order."""
    steps: Count = 4
    """Decode steps in one measurement; their mean is what a round says of a step."""
    peers: list[Literal["eager", "sdpa"]] = []
    """transformers' attention implementations to time in the same rounds."""
    threads: Count | None = None
    """Threads for torch; as many as the job has cores if not given."""
    seed: int = 0
    """Seed of the shuffling."""

    def given(self, config: Configuration, stage: str, model: str | None) -> dict[str, Any]:
        match stage:
            case "timing":
                return super().given(config, stage, model) | {"memory_mb": config.memory_mb}
            case "machine":
                return {"model": model, "device": config.device}
        return {"model": model}
