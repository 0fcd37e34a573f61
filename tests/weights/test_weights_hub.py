"""A hub, spoken to by its own client: each test runs it in a process of its own, as a job would."""

import json

import pytest
import tiny_weights as tiny
from hub_server import Repository, serve

NAME = "owner/tiny"


@pytest.fixture
def repository(tmp_path):
    folder = tiny.checkpoint(tmp_path / "upload")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return Repository(NAME, files | {"README.md": b"text", "pytorch_model.bin": b"pickle"})


@pytest.fixture
def ask(tmp_path):
    """Fetch several sources from a hub in one process: the rows of each table, and the sentence of each error."""

    def ask(url, *changes, **environment):
        source = {"kind": "hub", "repository": NAME, "revision": "main", "sha256": {}}
        settings = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
        settings |= {"HF_HUB_OFFLINE": "0", "HF_TOKEN": "", "NO_PROXY": "127.0.0.1"}
        sources = [source | change for change in changes]
        return tiny.fetch_elsewhere(*sources, lock_file=tmp_path / "lock.json", **(settings | environment))

    return ask


@pytest.fixture
def get(ask):
    """Fetch the repository: the rows of the table, and the sentence of the error."""
    return lambda url, pins=None, **environment: ask(url, {"sha256": pins or {}}, **environment)[0]


def cached(own_cache, name):
    return list((own_cache / "blobs").rglob(name))


def test_a_model_is_fetched_once_and_needs_no_network_afterwards(repository, get, tmp_path, own_cache):
    with serve(repository) as hub:
        rows, sentence = get(hub.url)
        downloads = [request for request in hub.requests if request.startswith("GET /owner")]
    assert sentence == ""
    assert [row["file"] for row in rows] == ["config.json", "model.safetensors", "tokenizer.json"]
    assert {row["revision"] for row in rows} == {repository.commit}
    assert {(row["license"], row["pinned"], row["source"]) for row in rows} == {("mit", "lock", NAME)}
    assert len(downloads) == 3 and not any("pytorch_model" in path for path in downloads)
    recorded = json.loads((tmp_path / "lock.json").read_text())[f"hub:{NAME}@main"]
    assert recorded["model.safetensors"]["sha256"] == repository.etag("model.safetensors")
    blob = cached(own_cache, "model.safetensors")[0]
    assert blob.stat().st_nlink == 2, "the file should be shared with the client's cache"
    # The hub is gone now: the lock vouches for what is cached ...
    assert get(hub.url) == (rows, "")
    # ... and without our cache and our lock, the client's own cache still has it.
    (tmp_path / "lock.json").unlink()
    elsewhere = {"TOKENTRAIL_CACHE": str(tmp_path / "another cache"), "HF_HUB_OFFLINE": "1"}
    offline, sentence = get(hub.url, **elsewhere)
    assert sentence == ""
    assert [(row["file"], row["sha256"]) for row in offline] == [(row["file"], row["sha256"]) for row in rows]


def test_a_download_that_breaks_off_is_resumed(repository, get):
    # The client writes to the disk in pieces of 10 MiB, and resumes after the last whole one.
    values = 6 << 20
    header = b'{"a":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (values, 4 * values)
    content = len(header).to_bytes(8, "little") + header + bytes(4 * values)
    repository.files["model.safetensors"] = content
    repository.dropped = {"model.safetensors"}
    with serve(repository) as hub:
        rows, sentence = get(hub.url)
        ranges = [request for request in hub.requests if "bytes=" in request]
    assert sentence == ""
    assert rows[1]["sha256"] == repository.etag("model.safetensors")
    assert [request.split()[-1] for request in ranges] == [f"bytes={10 << 20}-"]


def test_bytes_that_are_not_what_the_hub_promises_are_removed(repository, get, own_cache, tmp_path):
    repository.damaged = {"model.safetensors"}
    promised = repository.etag("model.safetensors")
    with serve(repository) as hub:
        rows, sentence = get(hub.url, pins={"model.safetensors": promised})
        assert rows == []
        assert "model.safetensors of owner/tiny arrived damaged" in sentence
        assert f"the hub states {promised} and {promised} is pinned" in sentence
        assert not cached(own_cache, "model.safetensors")
        assert not list((tmp_path / "hf").rglob(promised))
        assert not list((tmp_path / "hf").rglob("model.safetensors"))
        repository.damaged = set()
        assert get(hub.url, pins={"model.safetensors": promised})[1] == ""


def test_a_file_that_is_whole_but_not_the_pinned_one_stays_with_the_client(repository, get, own_cache, tmp_path):
    found = repository.etag("model.safetensors")
    with serve(repository) as hub:
        rows, sentence = get(hub.url, pins={"model.safetensors": "0" * 64})
    assert rows == []
    assert f"has the SHA-256 {found}, but the configuration pins {'0' * 64}" in sentence
    assert not cached(own_cache, "model.safetensors")
    assert list((tmp_path / "hf").rglob("model.safetensors"))


def test_only_pickled_weights_are_refused_by_name_before_any_download(repository, get):
    del repository.files["model.safetensors"]
    with serve(repository) as hub:
        _, sentence = get(hub.url)
        assert not [request for request in hub.requests if "/resolve/" in request]
    assert "repository owner/tiny holds its weights only as pytorch_model.bin" in sentence


def test_what_the_hub_does_not_have_is_named_with_its_remedy(repository, ask):
    with serve(repository) as hub:
        wrong = ({"repository": "owner/nothing"}, {"revision": "v9"}, {"repository": "no such name!"})
        no_repository, no_revision, no_name = (sentence for _, sentence in ask(hub.url, *wrong))
    assert f"there is no repository owner/nothing at {hub.url}, or it is private" in no_repository
    assert no_revision == "repository owner/tiny has no revision v9; correct source.revision"
    assert "source.repository is 'no such name!'" in no_name


def test_a_gated_repository_is_named_with_its_remedy(repository, get):
    repository.gated = True
    with serve(repository) as hub:
        _, sentence = get(hub.url)
    assert "repository owner/tiny is gated; accept its terms at" in sentence and "HF_TOKEN" in sentence


@pytest.mark.parametrize(("status", "remedy"), [(403, "set HF_TOKEN"), (500, "try again later")])
def test_a_hub_that_answers_with_an_error_is_named(repository, get, status, remedy):
    repository.status = status
    with serve(repository) as hub:
        _, sentence = get(hub.url)
    assert f"{hub.url} answered HTTP status {status} for owner/tiny at main; {remedy}" in sentence


def test_a_hub_that_is_not_there_is_named(repository, get):
    with serve(repository) as hub:
        pass
    _, sentence = get(hub.url)
    assert f"cannot be downloaded because {hub.url} was not reached" in sentence
    assert "kind `folder`" in sentence
    _, sentence = get(hub.url, HF_HUB_OFFLINE="1")
    assert "is not in the Hugging Face cache and HF_HUB_OFFLINE is set" in sentence
