"""Shared by all tests: threads, quiet transformers, and random models built once a session."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch


def pytest_collection_modifyitems(items):
    """With several workers, a folder is one worker's: what its tests share is built once. The longest goes first."""
    items.sort(key=lambda item: item.path.parent.name != "workflow")
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.parent.name))


@pytest.fixture(scope="session", autouse=True)
def quiet_and_two_threads():
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    yield


@pytest.fixture(scope="session")
def pair(tmp_path_factory):
    """`pair(name)` is the random model of that variant, built on first use."""
    import random_models

    built = {}

    def of(name: str) -> random_models.Pair:
        if name not in built:
            built[name] = random_models.build(random_models.VARIANTS[name], tmp_path_factory.mktemp(name))
        return built[name]

    return of
