"""Hashes are recorded on first use and held since."""

import json
import threading

import pytest
import tiny_weights as tiny
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, lock
from tokentrail.weights.blobs import Blob
from tokentrail.weights.sources import source_of

SOURCE = source_of({"kind": "hub", "repository": "owner/name"})
KEY = "hub:owner/name@main"


def blob(name, digit="a", size=7):
    return Blob(name, digit * 64, size, None)


def test_first_use_records_and_later_use_verifies(tmp_path):
    path = tmp_path / "config" / "weights.lock.json"
    lock.hold(SOURCE, path, [blob("b"), blob("a", "1")])
    recorded = {"a": {"bytes": 7, "sha256": "1" * 64}, "b": {"bytes": 7, "sha256": "a" * 64}}
    assert json.loads(path.read_text()) == {KEY: recorded}
    before = path.stat().st_mtime_ns
    lock.hold(SOURCE, path, [blob("b")])
    assert path.stat().st_mtime_ns == before
    with pytest.raises(WeightsError) as error:
        lock.hold(SOURCE, path, [blob("b", "c")])
    for part in ("b of", KEY, "c" * 64, "a" * 64, "weights.lock.json", "delete the entry"):
        assert part in str(error.value)
    assert json.loads(path.read_text()) == {KEY: recorded}


def test_a_new_file_joins_the_entry_and_other_entries_stay(tmp_path):
    path = tmp_path / "lock.json"
    lock.hold(SOURCE, path, [blob("a")])
    lock.hold(SOURCE.model_copy(update={"repository": "owner/another"}), path, [blob("a", "2")])
    lock.hold(SOURCE, path, [blob("a"), blob("b")])
    entries = json.loads(path.read_text())
    assert list(entries) == ["hub:owner/another@main", KEY]
    assert list(entries[KEY]) == ["a", "b"]


def test_a_pinned_file_is_not_recorded(tmp_path):
    path = tmp_path / "lock.json"
    lock.hold(SOURCE.model_copy(update={"sha256": {"a": "a" * 64}}), path, [blob("a"), blob("b")])
    assert list(json.loads(path.read_text())[KEY]) == ["b"]


def test_a_pin_takes_precedence_over_the_record(tmp_path):
    path = tmp_path / "lock.json"
    lock.hold(SOURCE, path, [blob("a")])
    pinned = SOURCE.model_copy(update={"sha256": {"a": "c" * 64}})
    lock.hold(pinned, path, [blob("a", "c")])
    with pytest.raises(WeightsError, match="configuration pins"):
        lock.hold(pinned, path, [blob("a")])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"k": []}', '{"k": {"f": {}}}', '{"k": {"f": {"sha256": 1}}}'])
def test_a_damaged_lock_file_is_named(tmp_path, text):
    path = tmp_path / "lock.json"
    path.write_text(text)
    with pytest.raises(WeightsError, match=r"lock\.json is not valid"):
        lock.pins(SOURCE, path)


def test_updates_wait_for_each_other(tmp_path):
    path = tmp_path / "lock.json"
    with blobs.lock(f"lock file {path}"):
        thread = threading.Thread(target=lock.hold, args=(SOURCE, path, [blob("a")]))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and not path.exists()
    thread.join(5)
    assert path.exists()


def test_no_stray_file_stands_beside_the_lock_file(tmp_path):
    lock.hold(SOURCE, tmp_path / "here" / "lock.json", [blob("a")])
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["lock.json"]


def test_keys_name_kind_source_and_revision():
    assert source_of(tiny.package_source()).key == "package:tiny-weights@1.0"
    assert source_of({"kind": "folder", "path": "models/x"}).key == "folder:models/x@"
