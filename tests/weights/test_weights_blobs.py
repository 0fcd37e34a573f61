"""The cache keeps what it was given, whole, and notices when it changes."""

import errno
import hashlib
import os
import shutil
import threading

import pytest
import tiny_weights as tiny
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs

CONTENT = b"weights" * 1000


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "given.bin"
    path.write_bytes(CONTENT)
    return path


def files_in(root):
    """Whatever is in the cache beside locks and records."""
    return sorted(path.name for top in ("blobs", "staging") for path in (root / top).rglob("*") if path.is_file())


def test_a_stored_file_is_found_by_its_hash_and_cannot_be_written(source, own_cache):
    blob = blobs.store(source, "a.bin")
    assert blob.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert blob.path == own_cache / "blobs" / blob.sha256 / "a.bin"
    assert blob.path.stat().st_mode & 0o777 == 0o444
    assert blobs.find("a.bin", blob.sha256) == blob
    assert blobs.find("b.bin", blob.sha256) is None


@pytest.mark.parametrize("how", ["copy", "link", "move"])
def test_every_way_of_storing_keeps_the_content(source, how):
    inode = source.stat().st_ino
    blob = blobs.store(source, "a.bin", how=how)
    assert blob.path.read_bytes() == CONTENT
    assert source.exists() == (how != "move")
    assert (blob.path.stat().st_nlink == 2) == (how == "link")
    # Moved and linked files are the same file: nothing is copied into place, so nothing can be half there.
    assert (blob.path.stat().st_ino == inode) == (how != "copy")


def test_a_link_that_the_file_system_refuses_becomes_a_copy(source, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "link", refuse)
    blob = blobs.store(source, "a.bin", how="link")
    assert blob.path.read_bytes() == source.read_bytes() == CONTENT


def test_storing_twice_keeps_the_first_file(source):
    first = blobs.store(source, "a.bin").path.stat()
    second = blobs.store(source, "a.bin").path.stat()
    assert (first.st_ino, first.st_mtime_ns) == (second.st_ino, second.st_mtime_ns)


def test_a_file_that_the_check_refuses_does_not_enter(source, own_cache):
    def refuse(name, found):
        raise WeightsError(f"{name} {found}")

    with pytest.raises(WeightsError, match=f"a.bin {hashlib.sha256(CONTENT).hexdigest()}"):
        blobs.store(source, "a.bin", check=refuse)
    assert files_in(own_cache) == []


@pytest.mark.parametrize("name", ["../a.bin", "a/b.bin", ".hidden", ""])
def test_only_plain_names_are_stored(source, name):
    with pytest.raises(WeightsError, match="plain file name"):
        blobs.store(source, name)


def test_a_changed_file_is_noticed_and_both_hashes_are_named(source):
    blob = blobs.store(source, "a.bin")
    blob.path.chmod(0o644)
    blob.path.write_bytes(CONTENT[:-1] + b"x")
    found = hashlib.sha256(CONTENT[:-1] + b"x").hexdigest()
    with pytest.raises(WeightsError, match=f"{blob.sha256} and is {found}; delete.*--forcerun weights"):
        blobs.find("a.bin", blob.sha256)


def test_a_changed_file_is_replaced_when_it_is_stored_again(source):
    blob = blobs.store(source, "a.bin")
    blob.path.chmod(0o644)
    blob.path.write_bytes(b"changed")
    blobs.store(source, "a.bin")
    assert blobs.find("a.bin", blob.sha256).path.read_bytes() == CONTENT


def test_an_untouched_file_is_not_hashed_again_and_a_touched_one_once(source, monkeypatch):
    blob = blobs.store(source, "a.bin")
    hashed = []
    real = blobs.sha256_of
    monkeypatch.setattr(blobs, "sha256_of", lambda path: hashed.append(path) or real(path))
    blobs.find("a.bin", blob.sha256)
    assert hashed == []
    os.utime(blob.path, ns=(1, 1))
    blobs.find("a.bin", blob.sha256)
    blobs.find("a.bin", blob.sha256)
    assert hashed == [blob.path]


def test_facts_are_kept_with_a_file_and_lost_with_it(source):
    blob = blobs.store(source, "a.bin")
    assert blobs.facts(blob) is None
    blobs.note(blob, {"dtypes": ["F32"]})
    os.utime(blob.path, ns=(1, 1))
    assert blobs.facts(blobs.find("a.bin", blob.sha256)) == {"dtypes": ["F32"]}
    blob.path.unlink()
    blobs.store(source, "a.bin")
    assert blobs.facts(blob) is None


def test_a_disk_without_room_is_named_before_anything_is_copied(source, monkeypatch, own_cache):
    usage = shutil.disk_usage(source.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=len(CONTENT) - 1))
    with pytest.raises(WeightsError, match=r"no room for a\.bin; .*TOKENTRAIL_CACHE"):
        blobs.store(source, "a.bin")
    assert files_in(own_cache) == []


def test_a_disk_that_fills_up_while_copying_leaves_nothing(source, monkeypatch, own_cache):
    class Full:
        def update(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    real = hashlib.sha256
    monkeypatch.setattr(hashlib, "sha256", lambda *given: real(*given) if given else Full())
    with pytest.raises(WeightsError, match=r"no room for a\.bin"):
        blobs.store(source, "a.bin")
    assert files_in(own_cache) == []


def test_a_cache_that_is_a_file_is_named(source, tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENTRAIL_CACHE", str(source / "cache"))
    with pytest.raises(WeightsError, match=r"cannot be written.*TOKENTRAIL_CACHE"):
        blobs.store(source, "a.bin")


def test_a_process_killed_while_storing_leaves_nothing_half_written(tmp_path, own_cache):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = f"""
from pathlib import Path
from tokentrail.weights import blobs
blobs.store(Path({str(pipe)!r}), "a.bin")
"""
    process = tiny.start(code)
    with pipe.open("wb") as writer:
        writer.write(CONTENT * 300)  # more than a chunk, so that part of it is on the disk
        writer.flush()
        process.kill()
        process.wait()
    process.stdout.close()
    process.stderr.close()
    assert not list((own_cache / "blobs").rglob("*"))
    assert list((own_cache / "staging").rglob("a.bin")), "the process was killed before it wrote anything"
    with blobs.staging():
        assert not list((own_cache / "staging").rglob("a.bin"))


def test_staging_of_a_living_process_is_left_alone(tmp_path):
    with blobs.staging() as outer:
        (outer / "part").write_text("not whole yet")
        with blobs.staging() as inner:
            assert inner != outer
        assert (outer / "part").exists()
    assert not outer.exists()


def test_a_lock_is_held_by_one_at_a_time():
    entered = threading.Event()

    def wait():
        with blobs.lock("key"):
            entered.set()

    with blobs.lock("key"):
        thread = threading.Thread(target=wait)
        thread.start()
        assert not entered.wait(0.3)
        with blobs.lock("another key"):
            pass
    assert entered.wait(5)
    thread.join()


def test_the_cache_is_light_to_import():
    code = """
import sys
import tokentrail.weights.blobs, tokentrail.weights.checkpoint
print(sorted({"torch", "transformers", "huggingface_hub", "gguf", "numpy"} & set(sys.modules)))
"""
    output, errors = tiny.start(code).communicate(timeout=60)
    assert output.strip() == "[]", errors
