"""Random models that can be packed, built once a session."""

from __future__ import annotations

import pytest
from packable_models import build_packable
from random_models import Pair


@pytest.fixture(scope="session")
def packable(tmp_path_factory):
    """`packable(name)` is that random model, built on first use."""
    built: dict[str, Pair] = {}

    def of(name: str) -> Pair:
        if name not in built:
            built[name] = build_packable(name, tmp_path_factory.mktemp(name))
        return built[name]

    return of
