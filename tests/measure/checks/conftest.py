"""The tiny models, built once a session."""

from __future__ import annotations

import pytest
import torch
from tiny_models import CONFIGS, Tiny, config_of


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """`folders(name)` holds the checkpoint of that tiny model, saved on first use."""
    from random_models import build

    saved = {}

    def of(name: str):
        if name not in saved:
            saved[name] = build(config_of(name), tmp_path_factory.mktemp(name)).folder
        return saved[name]

    return of


@pytest.fixture(scope="session")
def tinies(folders):
    made = {}

    def of(name: str) -> Tiny:
        return made.setdefault(name, Tiny(name, folders(name)))

    return of


@pytest.fixture(scope="session", params=CONFIGS)
def tiny(request, tinies) -> Tiny:
    return tinies(request.param)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """What is so small is done before a second thread is awake."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
