import os

import pytest

MACHINE = dict(os.environ)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Every test has a cache of its own, and no settings of the machine's pip."""
    monkeypatch.setenv("TOKENTRAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return tmp_path / "cache"


@pytest.fixture
def machines_pip(own_cache, monkeypatch):
    """pip as it is configured on this machine, for tests that download a real package."""
    for name in ("PIP_CONFIG_FILE", "PIP_NO_INDEX", "PIP_FIND_LINKS"):
        if name in MACHINE:
            monkeypatch.setenv(name, MACHINE[name])
        else:
            monkeypatch.delenv(name)
