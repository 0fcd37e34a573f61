"""Source kind `folder`: files that are on this machine already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokentrail.errors import WeightsError
from tokentrail.weights import cache, layout
from tokentrail.weights.cache import Blob
from tokentrail.weights.layout import Fetched, Place
from tokentrail.weights.lock import Pins


def fetch(source: dict[str, Any], pins: Pins) -> Fetched:
    """Copy the model's files from `source["path"]` into the cache; the folder itself is left as it is.

    Raises WeightsError if the folder or a file is missing or cannot be read, if it holds no weights of a kind
    that is read here, or if a file is not the one that was pinned.
    """
    where = Place(f"folder {source['path']}", editable=True)
    folder = Path(source["path"]).expanduser()
    if not folder.is_dir():
        there = "is a file" if folder.exists() else "does not exist"
        raise WeightsError(f"source.path is {source['path']}, which {there}; give the folder that holds the weights")
    file = source.get("file", "")
    names = [
        path.relative_to(folder).as_posix() for each in layout.looked_into(folder, file) for path in each.iterdir()
    ]
    names = [name for name in names if (folder / name).is_file()]

    def get(name: str) -> Blob:
        path = folder / name
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise WeightsError(
                f"{name} in {where} cannot be read ({error.strerror}); put the file there or correct its permissions"
            ) from None
        return cache.store(path, path.name, check=pins.check)

    return Fetched(layout.collect(names, where, file, get), revision="", license="")
