"""Source kind `folder`: files that are on this machine already."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from tokentrail.declare.settings import InputPath
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, layout
from tokentrail.weights.blobs import Blob
from tokentrail.weights.layout import Fetched, Holder
from tokentrail.weights.lock import Pins
from tokentrail.weights.sources import Sha256, Source

READ = ("*.safetensors", "*.gguf", "*.json")


class FolderSource(Source):
    """A folder on this machine with `config.json`, safetensors and `tokenizer.json`, or with one GGUF file."""

    kind: Literal["folder"]
    """`folder`: files that are already here."""
    path: InputPath
    """Path of the folder; a relative path starts at the folder that snakemake runs in."""
    file: str = ""
    """Which weights, if there are several: a `.gguf` or `.safetensors` file, or a folder with `config.json` in it."""
    sha256: dict[str, Sha256] = {}
    """Pinned hashes by file name."""

    fixed: ClassVar[bool] = False

    @property
    def folder(self) -> Path:
        return Path(self.path).expanduser()

    @property
    def key(self) -> str:
        return f"folder:{self.path}@"

    @property
    def shown(self) -> str:
        return Path(self.path).absolute().name

    def watched(self) -> list[Path]:
        folders = layout.looked_into(self.folder, self.file)
        return [file for folder in folders for kind in READ for file in folder.glob(kind)]

    def fetch(self, pins: Pins) -> Fetched:
        """Copy the model's files into the cache; the folder itself is left as it is.

        Raises WeightsError if the folder or a file is missing or cannot be read, if it holds no weights of a kind
        that is read here, or if a file is not the one that was pinned.
        """
        where, folder = Holder(f"folder {self.path}", editable=True), self.folder
        if not folder.is_dir():
            there = "is a file" if folder.exists() else "does not exist"
            raise WeightsError(f"source.path is {self.path}, which {there}; give the folder that holds the weights")
        names = [
            path.relative_to(folder).as_posix()
            for each in layout.looked_into(folder, self.file)
            for path in each.iterdir()
        ]
        names = [name for name in names if (folder / name).is_file()]

        def get(name: str) -> Blob:
            path = folder / name
            try:
                with path.open("rb"):
                    pass
            except OSError as error:
                raise WeightsError(
                    f"{name} in {where} cannot be read ({error.strerror}); put it there or correct its permissions"
                ) from None
            return blobs.store(path, path.name, check=pins.check)

        return Fetched(layout.collect(names, where, self.file, get), revision="", license="")


SOURCE = FolderSource
