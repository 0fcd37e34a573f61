"""A model hub on this machine: as much of the Hugging Face hub's protocol as its client needs to download.

    with serve(Repository("owner/name", {"config.json": b"{}"})) as hub:
        ...  # HF_ENDPOINT = hub.url; hub.requests lists what was asked

Large files (here: safetensors) have their SHA-256 as ETag, as those in LFS do; others have git's blob hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Repository:
    """A repository of one commit, and what is wrong with it."""

    name: str
    files: dict[str, bytes]
    commit: str = "c0ffee" + "0" * 34
    branch: str = "main"
    license: str = "mit"
    gated: bool = False
    status: int = 0
    """An HTTP status to answer every request with; 0 for none."""
    damaged: set[str] = field(default_factory=set)
    """Files that arrive with other bytes than their ETag promises, as often as they are asked for."""
    dropped: set[str] = field(default_factory=set)
    """Files whose next download breaks off half-way; a file leaves the set when it did."""

    def etag(self, name: str) -> str:
        content = self.files[name]
        if name.endswith(".safetensors"):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Hub:
    url: str
    repository: Repository
    requests: list[str] = field(default_factory=list)
    """`METHOD path range` of each request."""


@contextlib.contextmanager
def serve(repository: Repository) -> Iterator[Hub]:
    """A hub that has one repository, for as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.hub = Hub(f"http://127.0.0.1:{server.server_port}", repository)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.hub
    finally:
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
        repository = hub.repository
        hub.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        if repository.status:
            return self.answer(repository.status, b"")
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+?))?(?:\?.*)?", self.path):
            name, revision, file = found[1], found[2] or "main", None
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path):
            name, revision, file = found.groups()
        else:
            return self.fail(404, "NotFound")
        if name != repository.name:
            return self.fail(404, "RepoNotFound")
        if revision not in (repository.branch, repository.commit):
            return self.fail(404, "RevisionNotFound")
        if file is None:
            return self.list_files(repository)
        if repository.gated:
            return self.fail(401, "GatedRepo")
        if file not in repository.files:
            return self.fail(404, "EntryNotFound")
        return self.send_file(repository, file)

    def list_files(self, repository: Repository):
        about = {
            "id": repository.name,
            "sha": repository.commit,
            "siblings": [{"rfilename": name} for name in sorted(repository.files)],
            "cardData": {"license": repository.license},
            "tags": [],
        }
        self.answer(200, json.dumps(about).encode(), {"Content-Type": "application/json"})

    def send_file(self, repository: Repository, name: str):
        content = repository.files[name]
        if name in repository.damaged:
            content = content[:-1] + bytes([content[-1] ^ 1])
        begin = 0
        if asked := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")):
            begin = int(asked[1])
        headers = {
            "ETag": f'"{repository.etag(name)}"',
            "X-Repo-Commit": repository.commit,
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        if name.endswith(".safetensors"):
            headers |= {"X-Linked-Etag": f'"{repository.etag(name)}"', "X-Linked-Size": str(len(content))}
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        part = content[begin:]
        if self.command == "GET" and name in repository.dropped:
            repository.dropped.discard(name)
            self.answer(200, part, headers, send=len(part) // 2)
            self.close_connection = True
            return
        self.answer(206 if begin else 200, part, headers)

    def fail(self, status: int, code: str):
        self.answer(status, b"", {"X-Error-Code": code, "X-Error-Message": code})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None, send: int | None = None):
        """A response with the length of `body`, of which `send` bytes are sent (all, if not given)."""
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:send])
