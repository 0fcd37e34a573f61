"""What a family is tested with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from planting import Fault


@dataclass(frozen=True)
class Cases:
    variants: dict[str, dict]
    """Small models by name, each as a config.json: one at least for every value of a key that changes the pass."""
    faults: list[Fault]
    """What can go wrong in the family's own file; the parity gate must catch every one."""
    refused: list[Fault] = field(default_factory=list)
    """What can go wrong there and must not be loaded at all."""
    full_shapes: dict[str, dict] = field(default_factory=dict)
    """Published models by name, each as a config.json."""
    in_version_4: Callable[[dict], dict] = lambda config: config
    """A config.json of transformers 5, without nulls, as version 4 spelt the keys that are the family's own."""

    @property
    def model_types(self) -> set[str]:
        return {config["model_type"] for config in self.variants.values()}


SMALL = {
    "vocab_size": 97,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
