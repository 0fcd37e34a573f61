"""A hub, spoken to by its own client: each test runs it in a process of its own, as a job would."""

import concurrent.futures
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import tiny_weights as tiny
from hub_server import Hub, Repository, serve
from tokentrail.weights.progress import line

NAME = "owner/tiny"


def settings(url, folder):
    """What a process is told of the hub; its client keeps nothing but in `folder`."""
    return {
        "HF_ENDPOINT": url,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1,localhost",
    }


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
        sources = [source | change for change in changes]
        chosen = settings(url, tmp_path) | {"HF_TOKEN": ""} | environment
        return tiny.fetch_elsewhere(*sources, lock_file=tmp_path / "lock.json", **chosen)

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
        downloads = [request for request in hub.requests if request.startswith(("GET /owner", "GET /store"))]
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
    repository.files["model.safetensors"] = tiny.zeros(24 << 20)
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


RIGHT = "hf_right"
FAULTS = {
    "pickled": {"without": ["model.safetensors"]},
    "gated": {"gated": True},
    "gated-to-others": {"gated": True, "token": "hf_other"},
    "gated-to-us": {"gated": True, "token": RIGHT},
    "forbidden": {"status": 403},
    "failing": {"status": 500},
    "recovering": {"status": 500, "times": 2},
    "busy": {"status": 429, "times": 1, "retry_after": "3"},
    "busy-for-long": {"status": 429, "retry_after": "3600"},
    "shortened": {"shortened": {"model.safetensors"}},
    "damaged-config": {"damaged": {"config.json"}},
    "uploaded-truncated": {"cut": 4},
    "renamed": {"former_name": "owner/former"},
    "large": {"zeros": 24 << 20},
}
"""A repository for each fault of a hub, and what is wrong with it."""
ASKED = {name: {"repository": f"owner/{name}"} for name in FAULTS} | {
    "nothing": {"repository": "owner/nothing"},
    "no-revision": {"repository": "owner/large", "revision": "v9"},
    "no-name": {"repository": "no such name!"},
    "former": {"repository": "owner/former"},
}


def broken(files, name, without=(), cut=0, zeros=0, **wrong):
    files = {each: content for each, content in files.items() if each not in without}
    if cut:
        files["model.safetensors"] = files["model.safetensors"][:-cut]
    if zeros:
        files["model.safetensors"] = tiny.zeros(zeros)
    return Repository(f"owner/{name}", files, **wrong)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What came of each fault: the rows, the sentence, the requests, the seconds; and all that was logged.

    One process asks for all of them: starting one takes longer than the questions.
    """
    folder = tmp_path_factory.mktemp("faults")
    upload = tiny.checkpoint(folder / "upload")
    files = {path.name: path.read_bytes() for path in upload.iterdir()} | {"pytorch_model.bin": b"pickle"}
    with serve(*(broken(files, name, **wrong) for name, wrong in FAULTS.items())) as hub:
        sources = [{"kind": "hub", "revision": "main", "sha256": {}} | asked for asked in ASKED.values()]
        found = tiny.fetch_elsewhere(
            *sources,
            lock_file=folder / "lock.json",
            **settings(hub.url, folder),
            HF_TOKEN=RIGHT,
            LOG=str(folder / "log.txt"),
            TOKENTRAIL_CACHE=str(folder / "cache"),
        )
        return Outcome(hub, dict(zip(ASKED, found, strict=True)), folder)


@dataclass(frozen=True)
class Outcome:
    hub: Hub
    found: dict
    folder: Path

    def sentence(self, name):
        """Of a source that gave no model."""
        rows, sentence = self.found[name]
        assert rows == [] and sentence
        return sentence

    def files(self, name):
        """Of a source that gave its model."""
        rows, sentence = self.found[name]
        assert sentence == ""
        return [row["file"] for row in rows]

    def requests(self, name):
        return [request for request in self.hub.requests if f"owner/{name}" in request.split("?")[0].split()[1] + "/"]

    def logged(self):
        return (self.folder / "log.txt").read_text().splitlines()


WHOLE = ["config.json", "model.safetensors", "tokenizer.json"]


def test_only_pickled_weights_are_refused_by_name_before_any_download(outcome):
    assert "repository owner/pickled holds its weights only as pytorch_model.bin" in outcome.sentence("pickled")
    assert not [request for request in outcome.requests("pickled") if "/resolve/" in request]


def test_what_the_hub_does_not_have_is_named_with_its_remedy(outcome):
    nothing = outcome.sentence("nothing")
    assert f"there is no repository owner/nothing at {outcome.hub.url}, or it is private" in nothing
    assert outcome.sentence("no-revision") == "repository owner/large has no revision v9; correct source.revision"
    assert "source.repository is 'no such name!'" in outcome.sentence("no-name")


@pytest.mark.parametrize("name", ["gated", "gated-to-others"])
def test_a_gated_repository_is_named_with_its_remedy(outcome, name):
    sentence = outcome.sentence(name)
    assert f"repository owner/{name} is gated; accept its terms at" in sentence and "HF_TOKEN" in sentence


def test_a_token_opens_a_gated_repository_and_stays_with_the_hub(outcome):
    assert outcome.files("gated-to-us") == WHOLE
    of_hub, of_store = (
        {token for path, token in outcome.hub.tokens.items() if path.startswith(start) and "gated-to-us" in path}
        for start in ("/owner/", "/store/")
    )
    assert of_hub == {f"Bearer {RIGHT}"} and of_store == {""}


@pytest.mark.parametrize(
    ("name", "status", "remedy", "tries"),
    [
        ("forbidden", 403, "set HF_TOKEN", 1),
        ("failing", 500, "try again later", 4),
        ("busy-for-long", 429, "run again after the 3600 s that it asks for, or set HF_TOKEN", 1),
    ],
)
def test_a_hub_that_answers_with_an_error_is_named(outcome, name, status, remedy, tries):
    expected = f"{outcome.hub.url} answered HTTP status {status} for owner/{name} at main; {remedy}"
    assert expected in outcome.sentence(name)
    assert len(outcome.requests(name)) == tries


@pytest.mark.parametrize(("name", "pauses"), [("recovering", [1, 2]), ("busy", [3])])
def test_a_hub_that_recovers_is_asked_again_after_the_time_that_it_names(outcome, name, pauses):
    assert outcome.files(name) == WHOLE
    told = [line for line in outcome.logged() if f"owner/{name}" in line and "trying again" in line]
    assert [line.rpartition("trying again in ")[2] for line in told] == [f"{pause} s" for pause in pauses]


def test_a_file_that_ends_early_is_not_taken(outcome):
    assert "was cut off before its end; run again" in outcome.sentence("shortened")
    assert not list((outcome.folder / "hf").rglob("models--owner--shortened/**/model.safetensors"))


def test_a_small_file_is_held_to_its_git_hash(outcome):
    assert "config.json of owner/damaged-config arrived damaged: its git hash is" in outcome.sentence("damaged-config")
    assert not list((outcome.folder / "hf").rglob("models--owner--damaged-config/**/config.json"))


def test_a_tensor_file_that_was_uploaded_truncated_is_named(outcome):
    assert "model.safetensors is truncated: it should have" in outcome.sentence("uploaded-truncated")


def test_a_repository_that_was_renamed_is_found(outcome):
    assert outcome.files("former") == WHOLE


def test_progress_names_size_and_rate(outcome):
    told = [line for line in outcome.logged() if line.startswith("model.safetensors: 25.2 MB of 25.2 MB, ")]
    assert len(told) == 1 and told[0].endswith("B/s")


@pytest.mark.parametrize(
    ("done", "fetched", "seconds", "said"),
    [
        (131_000_000, 131_000_000, 5.5, "131 MB of 548 MB, 23.8 MB/s, 18 s left"),
        (300_000_000, 100_000, 1.0, "300 MB of 548 MB, 100 kB/s, 2481 s left"),
        (548_105_171, 548_105_171, 50.0, "548 MB of 548 MB, 11.0 MB/s"),
        (0, 0, 1.0, "0 B of 548 MB, 0 B/s"),
    ],
)
def test_a_line_of_progress_counts_what_this_download_fetched(done, fetched, seconds, said):
    assert line("model.safetensors", done, 548_105_171, fetched, seconds) == f"model.safetensors: {said}"


def test_a_hub_that_hangs_is_given_up(repository, ask):
    silent = Repository("owner/silent", repository.files, hangs={"/api"})
    repository.hangs = {"model.safetensors"}
    patience = {"HF_HUB_ETAG_TIMEOUT": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "1"}
    with serve(repository, silent) as hub:
        found = ask(hub.url, {}, {"repository": silent.name}, **patience)
    for rows, sentence in found:
        assert rows == []
        assert f"{hub.url} was not reached" in sentence and "timed out" in sentence


def test_a_disk_that_fills_up_is_named_and_nothing_is_left(repository, get, tmp_path, own_cache):
    # The disk of the client's cache is full: whatever it writes there goes to a device that has no room.
    repository.files["model.safetensors"] = tiny.zeros(1 << 20)
    with serve(repository) as hub:
        rows, sentence = get(hub.url, BEFORE=tiny.NO_ROOM_FOR_DOWNLOADS)
    assert rows == []
    assert f"the disk of the Hugging Face cache {tmp_path}" in sentence and "set HF_HOME to a folder" in sentence
    assert not cached(own_cache, "model.safetensors")


def test_two_runs_at_once_download_once_and_agree(repository, ask, tmp_path):
    repository.files["model.safetensors"] = tiny.zeros(24 << 20)
    with serve(repository) as hub, concurrent.futures.ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: ask(hub.url, {})[0], range(2)))
        downloads = [request for request in hub.requests if request.startswith("GET /store")]
    assert both[0] == both[1] and both[0][1] == ""
    assert len(downloads) == 1


def test_a_hub_that_is_not_there_is_named(repository, get):
    with serve(repository) as hub:
        pass
    _, sentence = get(hub.url)
    assert f"cannot be downloaded because {hub.url} was not reached" in sentence
    assert "put config.json, tokenizer.json and model.safetensors" in sentence
    assert f"from {hub.url}/{NAME}/tree/main into one folder" in sentence and "kind `folder`" in sentence
    _, sentence = get(hub.url, HF_HUB_OFFLINE="1")
    assert "is not in the Hugging Face cache and HF_HUB_OFFLINE is set" in sentence


def test_one_of_several_files_is_chosen_and_kept_apart_from_the_others(ask, tmp_path):
    """As in a repository of GGUFs: files of one name in several folders, and parts of one file."""
    first, second = (tiny.gguf(tmp_path / name, quantized=name).read_bytes() for name in ("Q4_0", "Q8_0"))
    files = {"Q4/tiny.gguf": first, "Q8/tiny.gguf": second, "a.gguf": first, "b.gguf": second, "README.md": b"text"}
    with serve(Repository(NAME, files)) as hub:
        chosen = ("", "Q4/tiny.gguf", "Q8", "Q8/tiny.gguf", "b.gguf", "c.gguf")
        online = ask(hub.url, *({"file": file} for file in chosen))
    for (rows, sentence), content in zip(online[1:5], (first, second, second, second), strict=True):
        assert sentence == "" and hashlib.sha256(content).hexdigest() in {row["sha256"] for row in rows}
    (_, several), (_, none) = online[0], online[5]
    assert "holds 2 GGUF files (a.gguf, b.gguf); choose one of them with source.file" in several
    assert "holds no c.gguf, but Q4/tiny.gguf, Q8/tiny.gguf, a.gguf, b.gguf; correct source.file" in none
    (tmp_path / "lock.json").unlink()
    offline = ask(hub.url, *({"file": file} for file in chosen[1:5]), HF_HUB_OFFLINE="1")
    assert [rows for rows, _ in offline] == [rows for rows, _ in online[1:5]]


@pytest.mark.parametrize("gone", ["config.json", "tokenizer.json"])
def test_what_a_repository_lacks_can_be_added_in_a_folder(repository, get, gone):
    del repository.files[gone]
    with serve(repository) as hub:
        _, sentence = get(hub.url)
    assert gone in sentence and f"put its files and the {gone} of the model into a folder" in sentence
