"""A model hub on this machine: as much of the Hugging Face hub's protocol as its client needs to download.

    with serve(Repository("owner/name", {"config.json": b"{}"})) as hub:
        ...  # HF_ENDPOINT = hub.url; hub.requests lists what was asked

Large files (here: safetensors) have their SHA-256 as ETag and lie in a store of their own that the hub redirects to,
as those in LFS do; others have git's blob hash and come from the hub itself.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

CHUNK = 1 << 20


@dataclass
class Repository:
    """A repository of one commit, and what is wrong with it."""

    name: str
    files: dict[str, bytes | Path]
    commit: str = "c0ffee" + "0" * 34
    branch: str = "main"
    license: str = "mit"
    former_name: str = ""
    """A name that the hub redirects from."""
    gated: bool = False
    token: str = ""
    """The token that opens a gated repository; without one, none does."""
    status: int = 0
    """An HTTP status to answer requests with; 0 for none."""
    times: int = -1
    """How many requests get that status before the hub recovers; -1 for every one."""
    retry_after: str = ""
    """`Retry-After` beside that status."""
    damaged: set[str] = field(default_factory=set)
    """Files that arrive with other bytes than their ETag promises, as often as they are asked for."""
    shortened: set[str] = field(default_factory=set)
    """Files that end early, with a length that says that this is all."""
    dropped: set[str] = field(default_factory=set)
    """Files whose next download breaks off half-way; a file leaves the set when it did."""
    hangs: set[str] = field(default_factory=set)
    """Files whose body never comes; `/api` for what the hub says about the repository."""

    @functools.cached_property
    def etags(self) -> dict[str, str]:
        return {name: self.etag(name) for name in self.files}

    def size(self, name: str) -> int:
        content = self.files[name]
        return content.stat().st_size if isinstance(content, Path) else len(content)

    def etag(self, name: str) -> str:
        content = self.files[name]
        if name.endswith(".safetensors"):
            if isinstance(content, Path):
                with content.open("rb") as file:
                    return hashlib.file_digest(file, "sha256").hexdigest()
            return hashlib.sha256(content).hexdigest()
        whole = content.read_bytes() if isinstance(content, Path) else content
        return hashlib.sha1(b"blob %d\0" % len(whole) + whole).hexdigest()

    def read(self, name: str, begin: int, end: int) -> Iterator[bytes]:
        """The bytes from `begin` to before `end`, in pieces."""
        content = self.files[name]
        if isinstance(content, bytes):
            yield content[begin:end]
            return
        with content.open("rb") as file:
            file.seek(begin)
            while begin < end and (piece := file.read(min(CHUNK, end - begin))):
                begin += len(piece)
                yield piece


@dataclass
class Hub:
    url: str
    repositories: dict[str, Repository]
    requests: list[str] = field(default_factory=list)
    """`METHOD path range` of each request."""
    tokens: dict[str, str] = field(default_factory=dict)
    """The `Authorization` that came with a path, by path."""
    closing: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def serve(*repositories: Repository) -> Iterator[Hub]:
    """A hub that has these repositories, for as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.hub = Hub(f"http://127.0.0.1:{server.server_port}", {each.name: each for each in repositories})
    # Another host name, as a store of large files has: the client must not send the user's token there.
    server.store = f"http://localhost:{server.server_port}/store"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.hub
    finally:
        server.hub.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.handle_request()

    def do_GET(self):
        self.handle_request()

    def handle_request(self):
        hub: Hub = self.server.hub
        path = unquote(self.path)
        hub.requests.append(f"{self.command} {path} {self.headers.get('Range', '')}".strip())
        hub.tokens[path] = self.headers.get("Authorization", "")
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+?))?(?:\?.*)?", path):
            name, revision, file = found[1], found[2] or "main", None
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            name, revision, file = found.groups()
        elif found := re.fullmatch(r"/store/([^/]+/[^/]+)/(.+)", path):
            return self.send_file(hub.repositories[found[1]], found[2])
        else:
            return self.fail(404, "NotFound")
        former = {each.former_name: each for each in hub.repositories.values() if each.former_name}
        if name in former:
            return self.answer(307, b"", {"Location": path.replace(name, former[name].name, 1)})
        if name not in hub.repositories:
            return self.fail(404, "RepoNotFound")
        repository = hub.repositories[name]
        if repository.status and repository.times != 0:
            repository.times -= 1
            asked = {"Retry-After": repository.retry_after} if repository.retry_after else {}
            return self.answer(repository.status, b"", asked)
        if revision not in (repository.branch, repository.commit):
            return self.fail(404, "RevisionNotFound")
        if file is None:
            return self.list_files(repository)
        if repository.gated and not self.may_read(repository):
            return self.fail(401, "GatedRepo")
        if file not in repository.files:
            return self.fail(404, "EntryNotFound")
        if file.endswith(".safetensors"):
            return self.answer(
                302, b"", self.facts(repository, file) | {"Location": f"{self.server.store}/{name}/{file}"}
            )
        return self.send_file(repository, file)

    def may_read(self, repository: Repository) -> bool:
        return bool(repository.token) and self.headers.get("Authorization") == f"Bearer {repository.token}"

    def list_files(self, repository: Repository):
        if "/api" in repository.hangs:
            return self.hang()
        about = {
            "id": repository.name,
            "sha": repository.commit,
            "siblings": [{"rfilename": name} for name in sorted(repository.files)],
            "cardData": {"license": repository.license},
            "tags": [],
        }
        return self.answer(200, json.dumps(about).encode(), {"Content-Type": "application/json"})

    def facts(self, repository: Repository, name: str) -> dict[str, str]:
        """What the hub states of a file, whoever sends its bytes."""
        facts = {"ETag": f'"{repository.etags[name]}"', "X-Repo-Commit": repository.commit}
        if name.endswith(".safetensors"):
            facts |= {"X-Linked-Etag": facts["ETag"], "X-Linked-Size": str(repository.size(name))}
        return facts

    def send_file(self, repository: Repository, name: str):
        begin, end = 0, repository.size(name)
        if name in repository.shortened:
            end -= end // 3
        if asked := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")):
            begin = int(asked[1])
        self.send_response(206 if begin else 200)
        headers = self.facts(repository, name) | {
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
            "Content-Length": str(end - begin),
        }
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{end}"
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if name in repository.hangs:
            self.hang()
            return
        if name in repository.dropped:
            repository.dropped.discard(name)
            end = begin + (end - begin) // 2
            self.close_connection = True
        with contextlib.suppress(ConnectionError):
            for piece in repository.read(name, begin, end):
                last = begin + len(piece) == end
                begin += len(piece)
                if last and name in repository.damaged:
                    piece = piece[:-1] + bytes([piece[-1] ^ 1])
                self.wfile.write(piece)

    def hang(self):
        """No answer, for as long as the hub is there."""
        self.server.hub.closing.wait()
        self.close_connection = True

    def fail(self, status: int, code: str):
        self.answer(status, b"", {"X-Error-Code": code, "X-Error-Message": code})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
