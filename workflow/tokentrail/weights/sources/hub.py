"""Source kind `hub`: a model repository on a Hugging Face hub.

The hub's own client does the work, so HF_ENDPOINT, HF_HOME, HF_TOKEN, HF_HUB_OFFLINE and its cache are
honoured; it reads them when it is first imported, which is when `fetch` first runs.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import logging
import re
import time
from pathlib import Path, PurePosixPath
from typing import Literal

from tokentrail.declare.settings import Text
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, layout
from tokentrail.weights.blobs import Blob
from tokentrail.weights.layout import Fetched, Holder
from tokentrail.weights.lock import Pins
from tokentrail.weights.progress import Progress
from tokentrail.weights.sources import Sha256, Source

LOG = logging.getLogger(__name__)
LFS_ETAG = re.compile(r"[0-9a-f]{64}")
GIT_ETAG = re.compile(r"[0-9a-f]{40}")
PAUSES = (1.0, 2.0, 4.0)
"""Seconds before each new try of a hub that has too much to do or fails, if it does not say how long to wait."""
LONGEST_PAUSE = 120.0
"""The longest wait, in seconds, that a hub may ask for; after that the user decides."""


class HubSource(Source):
    """A repository on a Hugging Face hub. HF_ENDPOINT, HF_HOME, HF_TOKEN and HF_HUB_OFFLINE are honoured."""

    kind: Literal["hub"]
    """`hub`: a model repository."""
    repository: Text
    """Repository, as `owner/name`."""
    revision: Text = "main"
    """Commit, tag or branch; a commit is what a paper should pin."""
    file: str = ""
    """Which weights, if there are several: a `.gguf` or `.safetensors` file, or a folder with `config.json` in it."""
    sha256: dict[str, Sha256] = {}
    """Pinned hashes by file name. Files without one are recorded on first use and held to that since."""

    @property
    def key(self) -> str:
        """Files of one name may lie in several folders of a repository: the one that is read is named as well."""
        inside = self.file.rstrip("/")
        folder = str(PurePosixPath(inside).parent) if inside.endswith((".gguf", ".safetensors")) else inside
        below = f"/{folder}" if folder not in ("", ".") else ""
        return f"hub:{self.repository}@{self.revision}{below}"

    @property
    def shown(self) -> str:
        return self.repository

    def fetch(self, pins: Pins) -> Fetched:
        """The files of the commit that the revision names.

        A hub that answers with status 429 or 5xx is asked again, after the time that it asks for. Raises WeightsError
        if the repository, the revision or a file does not exist or is not open to this user, the hub cannot be
        reached or goes on failing, the disk is full, a download is damaged, or a file is not the one that was pinned.
        """
        import httpx2
        from huggingface_hub import errors

        repository, revision = self.repository, self.revision
        for pause in (*PAUSES, None):
            try:
                return _fetch(repository, revision, self.file, pins)
            except errors.HFValidationError:
                raise WeightsError(
                    f"source.repository is {repository!r}, which is no repository; give it as owner/name"
                ) from None
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, errors.RevisionResolutionError) as error:
                seconds = None if pause is None else wait(error, pause)
                if seconds is None:
                    raise WeightsError(explain(error, repository, revision)) from error
                LOG.info("%s; trying again in %g s", explain(error, repository, revision).partition("; ")[0], seconds)
                time.sleep(seconds)
        raise AssertionError("the last pause is None, which ends the loop")


def wait(error: BaseException, pause: float) -> float | None:
    """Seconds to wait before the hub is asked again; None if asking again cannot help, or takes too long.

    `pause` holds if the hub does not state a `Retry-After` in seconds.
    """
    from huggingface_hub import errors

    error = _cause(error)
    if not isinstance(error, errors.HfHubHTTPError):
        return None
    if error.response.status_code != 429 and error.response.status_code < 500:
        return None
    asked = _asked_to_wait(error) or pause
    return asked if asked <= LONGEST_PAUSE else None


def _asked_to_wait(error) -> float | None:
    asked = error.response.headers.get("Retry-After", "")
    return float(asked) if asked.isdigit() else None


def _cause(error: BaseException) -> BaseException:
    """What went wrong: "not in the cache either" hides why the hub gave nothing."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError | errors.RevisionResolutionError):
        return error.__cause__ or error
    return error


def _client():
    """The hub's client. Its questions about a repository have no time limit of their own: a hub that hangs would
    hold the run for ever.
    """
    from huggingface_hub import HfApi, constants

    class Client(HfApi):
        def model_info(self, *args, timeout=None, **kwargs):
            return super().model_info(*args, timeout=timeout or constants.HF_HUB_ETAG_TIMEOUT, **kwargs)

    return Client()


def _fetch(repository: str, revision: str, file: str, pins: Pins) -> Fetched:
    api = _client()
    commit = api.resolve_revision(repository, revision=revision).resolved
    there, license = _listing(api, repository, commit)
    where = Holder(f"repository {repository}")
    files = layout.collect(there, where, file, lambda name: _download(repository, commit, name, pins))
    return Fetched(files, revision=commit, license=license)


def _listing(api, repository: str, commit: str) -> tuple[list[str], str]:
    """The files of the commit and the license on its card; without network, the files cached."""
    import httpx2
    from huggingface_hub import constants, errors
    from huggingface_hub.file_download import repo_folder_name

    try:
        info = api.model_info(repository, revision=commit)
    except (httpx2.TransportError, errors.OfflineModeIsEnabled):
        folder = repo_folder_name(repo_id=repository, repo_type="model")
        top = Path(constants.HF_HUB_CACHE, folder, "snapshots", commit)
        cached = [path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()]
        if not any(name.endswith((".gguf", ".safetensors")) for name in cached):
            raise
        return cached, ""
    card = info.card_data.to_dict() if info.card_data else {}
    license = card.get("license")
    return [file.rfilename for file in info.siblings or []], license if isinstance(license, str) else ""


def _download(repository: str, commit: str, name: str, pins: Pins) -> Blob:
    from huggingface_hub import hf_hub_download

    plain = PurePosixPath(name).name
    pointer = Path(hf_hub_download(repository, name, revision=commit, tqdm_class=functools.partial(Progress, plain)))
    # The client names what it stored by the hub's ETag.
    stored = pointer.resolve()

    def check(name: str, found: str) -> None:
        kind, hashed = _hashed_as(stored, found)
        if hashed != stored.name:
            pointer.unlink(missing_ok=True)
            stored.unlink(missing_ok=True)
            pinned = f" and {pins.of(name)} is pinned" if pins.of(name) else ""
            raise WeightsError(
                f"{name} of {repository} arrived damaged: its {kind} is {hashed}, but the hub states "
                f"{stored.name}{pinned}; it was removed, so run again to download it anew"
            )
        pins.check(name, found)

    return blobs.store(stored, plain, how="link", check=check)


def _hashed_as(stored: Path, sha256: str) -> tuple[str, str]:
    """The hash of a file that the hub's ETag states: SHA-256 for large files, git's blob hash for others."""
    if LFS_ETAG.fullmatch(stored.name):
        return "SHA-256", sha256
    if GIT_ETAG.fullmatch(stored.name):
        content = stored.read_bytes()
        return "git hash", hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return "ETag", stored.name


def explain(error: BaseException, repository: str, revision: str) -> str:
    """One sentence for what the hub's client raised."""
    from huggingface_hub import constants, errors

    hub, client_cache = constants.ENDPOINT, constants.HF_HUB_CACHE
    error = _cause(error)
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk of the Hugging Face cache {client_cache} has no room for {repository}; free some "
            "space, or set HF_HOME to a folder on a larger disk"
        )
    if isinstance(error, PermissionError):
        return (
            f"the Hugging Face cache {client_cache} cannot be written for {repository}; set HF_HOME to a "
            "folder that you can write to"
        )
    if "Consistency check failed" in str(error):
        return f"the download of {repository} from {hub} was cut off before its end; run again"
    match error:
        case errors.GatedRepoError():
            return (
                f"repository {repository} is gated; accept its terms at {hub}/{repository} and set HF_TOKEN "
                "to a token of the account that did"
            )
        case errors.RevisionNotFoundError():
            return f"repository {repository} has no revision {revision}; correct source.revision"
        case errors.RepositoryNotFoundError():
            return (
                f"there is no repository {repository} at {hub}, or it is private; correct source.repository, "
                "or set HF_TOKEN to a token that may read it"
            )
        case errors.RemoteEntryNotFoundError():
            return f"{repository} lacks a file that it lists at revision {revision}; choose another revision"
        case errors.OfflineModeIsEnabled():
            return (
                f"{repository} at revision {revision} is not in the Hugging Face cache and HF_HUB_OFFLINE is "
                "set; unset it once to download the files"
            )
        case errors.FileMetadataError():
            return f"{hub} does not answer like a Hugging Face hub for {repository}; correct HF_ENDPOINT"
        case errors.HfHubHTTPError():
            status = error.response.status_code
            remedy = _remedy(status, _asked_to_wait(error))
            return f"{hub} answered HTTP status {status} for {repository} at {revision}; {remedy}"
    return (
        f"{repository} at revision {revision} cannot be downloaded because {hub} was not reached "
        f"({_short(error)}); check the network, HF_ENDPOINT and the proxy, or fetch it by hand: put config.json, "
        f"tokenizer.json and model.safetensors (or its parts and {layout.INDEX}), or the .gguf file, from "
        f"{hub}/{repository}/tree/{revision} into one folder, without subfolders, and give that folder as a source of "
        "kind `folder`"
    )


def _remedy(status: int, asked: float | None) -> str:
    match status:
        case 401 | 403:
            return "set HF_TOKEN to a valid token that may read it"
        case 429:
            when = f"after the {asked:g} s that it asks for" if asked else "after some minutes"
            return f"run again {when}, or set HF_TOKEN for a higher limit"
    return "try again later"


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else text[:117] + "..."


SOURCE = HubSource
