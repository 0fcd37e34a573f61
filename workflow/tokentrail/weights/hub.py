"""Source kind `hub`: a model repository on a Hugging Face hub.

The hub's own client does the work, so HF_ENDPOINT, HF_HOME, HF_TOKEN, HF_HUB_OFFLINE and its cache are
honoured; it reads them when it is first imported, which is when `fetch` first runs.
"""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any

from tokentrail.errors import WeightsError
from tokentrail.weights import cache, layout
from tokentrail.weights.cache import Blob
from tokentrail.weights.layout import Fetched
from tokentrail.weights.lock import Pins

LFS_ETAG = re.compile(r"[0-9a-f]{64}")


def fetch(source: dict[str, Any], pins: Pins) -> Fetched:
    """The files of one commit of `source["repository"]`, the one that `source["revision"]` names.

    Raises WeightsError if the repository, the revision or a file does not exist or is not open to this user,
    the hub cannot be reached, the disk is full, a download is damaged, or a file is not the one that was
    pinned.
    """
    import httpx2
    from huggingface_hub import errors

    repository, revision = source["repository"], source["revision"]
    try:
        return _fetch(repository, revision, pins)
    except errors.HFValidationError:
        raise WeightsError(
            f"source.repository is {repository!r}, which is no repository; give it as owner/name"
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, errors.RevisionResolutionError) as error:
        raise WeightsError(explain(error, repository, revision)) from error


def _fetch(repository: str, revision: str, pins: Pins) -> Fetched:
    from huggingface_hub import HfApi

    where = f"repository {repository}"
    api = HfApi()
    commit = api.resolve_revision(repository, revision=revision).resolved
    there, license = _listing(api, repository, commit)
    names = layout.choose(there, where)
    files = []
    while names:
        name = names.pop(0)
        files.append(_download(repository, commit, name, pins))
        if name == layout.INDEX:
            names += layout.shards(files[-1].path, where)
    return Fetched(files, revision=commit, license=license)


def _listing(api, repository: str, commit: str) -> tuple[list[str], str]:
    """The files of the commit and the license on its card; without network, the files cached."""
    import httpx2
    from huggingface_hub import errors, try_to_load_from_cache

    try:
        info = api.model_info(repository, revision=commit)
    except (httpx2.TransportError, errors.OfflineModeIsEnabled):
        config = try_to_load_from_cache(repository, "config.json", revision=commit)
        if not isinstance(config, str):
            raise
        return [path.name for path in Path(config).parent.iterdir()], ""
    card = info.card_data.to_dict() if info.card_data else {}
    license = card.get("license")
    return [file.rfilename for file in info.siblings or []], license if isinstance(license, str) else ""


def _download(repository: str, commit: str, name: str, pins: Pins) -> Blob:
    from huggingface_hub import hf_hub_download

    pointer = Path(hf_hub_download(repository, name, revision=commit))
    # The client names what it stored by the hub's ETag, which for large files is the SHA-256.
    stored = pointer.resolve()

    def check(name: str, found: str) -> None:
        if LFS_ETAG.fullmatch(stored.name) and stored.name != found:
            pointer.unlink(missing_ok=True)
            stored.unlink(missing_ok=True)
            pinned = f" and {pins.of(name)} is pinned" if pins.of(name) else ""
            raise WeightsError(
                f"{name} of {repository} arrived damaged: its SHA-256 is {found}, but the hub states "
                f"{stored.name}{pinned}; it was removed, so run again to download it anew"
            )
        pins.check(name, found)

    return cache.store(stored, name, how="link", check=check)


def explain(error: BaseException, repository: str, revision: str) -> str:
    """One sentence for what the hub's client raised."""
    from huggingface_hub import constants, errors

    hub, client_cache = constants.ENDPOINT, constants.HF_HUB_CACHE
    if isinstance(error, errors.LocalEntryNotFoundError | errors.RevisionResolutionError):
        error = error.__cause__ or error  # "not in the cache either" hides why the hub gave nothing
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
            return f"{hub} answered HTTP status {status} for {repository} at {revision}; {_remedy(status)}"
    return (
        f"{repository} at revision {revision} cannot be downloaded because {hub} was not reached "
        f"({_short(error)}); check the network, HF_ENDPOINT and the proxy, or give files that are already "
        "here as a source of kind `folder`"
    )


def _remedy(status: int) -> str:
    match status:
        case 401 | 403:
            return "set HF_TOKEN to a valid token that may read it"
        case 429:
            return "wait some minutes and run again, or set HF_TOKEN for a higher limit"
    return "try again later"


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 120 else text[:117] + "..."
