"""Source kind `folder`: files that are on this machine already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokentrail.errors import WeightsError
from tokentrail.weights import cache, layout
from tokentrail.weights.layout import Fetched
from tokentrail.weights.lock import Pins


def fetch(source: dict[str, Any], pins: Pins) -> Fetched:
    """Copy the model's files from `source["path"]` into the cache; the folder itself is left as it is.

    Raises WeightsError if the folder or a file is missing or cannot be read, if it holds no weights of a kind
    that is read here, or if a file is not the one that was pinned.
    """
    where = f"folder {source['path']}"
    folder = Path(source["path"]).expanduser()
    if not folder.is_dir():
        there = "is a file" if folder.exists() else "does not exist"
        raise WeightsError(f"source.path is {source['path']}, which {there}; give the folder that holds the weights")
    names = layout.choose((path.name for path in folder.iterdir() if path.is_file()), where)
    files = []
    while names:
        name = names.pop(0)
        try:
            with (folder / name).open("rb"):
                pass
        except OSError as error:
            raise WeightsError(
                f"{name} in {where} cannot be read ({error.strerror}); put the file there or correct its permissions"
            ) from None
        files.append(cache.store(folder / name, name, check=pins.check))
        if name == layout.INDEX:
            names += layout.shards(files[-1].path, where)
    return Fetched(files, revision="", license="")
