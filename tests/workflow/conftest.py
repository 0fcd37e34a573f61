"""A checkout of this repository with two tiny random models, run once and copied by every test that changes it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tokentrail.rooms import timed as timed_tables

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["Snakefile", "workflow", "scripts", "profiles", "envs"]
RUN = "tiny"

CONFIG: dict[str, Any] = {
    "run": RUN,
    "title": "Two tiny random models",
    "models": {
        "alpha": {"label": "Alpha", "license": "none", "source": {"kind": "folder", "path": "models/alpha"}},
        "beta": {"label": "Beta", "license": "none", "source": {"kind": "folder", "path": "models/beta"}},
    },
    "prompts": {
        "king": {"text": "The king gave the crown to the", "target": " queen"},
        "capital": {"text": "The capital of the country is the", "target": " city"},
        "short": {"text": "The city is the", "target": " capital"},
    },
    "stages": {
        "next_token": {"top_k": 5},
        "name_swaps": {
            "sets": {
                "people": {
                    "templates": {"gave": "When {name} came, the king gave the book to", "met": "We met {name} and"},
                    "names": ["Carol", "Mirabel", "Tom"],
                }
            },
            "batch": 4,
            "bootstrap": {"samples": 100},
        },
        "lens": {"prompts": ["king"]},
        "attribution": {"prompts": ["king"]},
        "mixing": {"prompts": ["king"]},
        "attention": {"prompts": ["king"]},
        "sink": {"prompts": ["king"]},
        "cache": {"prompts": ["king"], "steps": 2, "pieces": [3]},
        "timing": {
            "decode_contexts": [4],
            "batches": [1, 2],
            "batch_context": 4,
            "prefill_lengths": [4],
            "rounds": 2,
            "steps": 1,
        },
        # The tiny models' rows are 48 weights long: the four-bit kernel cannot read them, the eight-bit one can.
        "quantization": {
            "passages": {"king": "passages/king.txt"},
            "schemes": {
                "q4": {"bits": 4, "group_size": 16},
                "q4-packed": {"bits": 4, "group_size": 32, "scales": "bfloat16", "packed": True},
                "q8-packed": {"bits": 8, "group_size": "channel", "scales": "bfloat16", "packed": True},
            },
            "errors": ["q4"],
            "bootstrap": {"samples": 100},
            "times": {"context": 4, "steps": 1, "prefill": 4, "rounds": 2},
        },
        "block": {"prompts": ["king"]},
        "mlp": {"prompts": ["king"]},
        "positions": {"prompts": ["king"]},
        "distribution": {"continue_for": 2},
        "merges": {"words": ["kingdom"]},
        "geometry": {"words": [" king"], "random": 20},
        # The tiny tokenizer makes seven tokens of king and of capital, and four of short.
        "ablations": {"prompts": ["king"], "resample_from": {"king": "capital"}},
        "patching": {"pairs": [{"prompt": "king", "source": "capital"}]},
        "filler": {
            "head": "The king gave the crown to the queen.",
            "tail": "The crown is of the",
            "target": " queen",
            "fillers": {"city": "The city is the capital."},
            "repeats": [0, 1],
        },
    },
}


@dataclass
class Checkout:
    """A copy of the repository's workflow in a folder of its own, with its own weights cache."""

    path: Path

    @property
    def results(self) -> Path:
        return self.path / "results" / RUN

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SNAKEMAKE_PROFILE")}
        # Like a user who has installed another checkout: the workflow must use its own library all the same.
        other = {"PYTHONPATH": os.pathsep.join([str(ROOT / "workflow"), str(self.path / "workflow")])}
        return kept | other | {"TOKENTRAIL_CACHE": str(self.path / "cache"), "HF_HUB_OFFLINE": "1"}

    def start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "snakemake", "--cores", "4", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.path,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def snakemake(self, *arguments: str) -> tuple[int, str]:
        """Exit status and everything that was printed."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=1800)
        return process.returncode, output

    def run(self, *arguments: str) -> str:
        status, output = self.snakemake(*arguments)
        assert status == 0, output
        return output

    def plan(self) -> set[str]:
        """The jobs of a dry run, each by its first output below the results folder, without the suffix."""
        output = self.run("--dry-run")
        found = re.findall(r"^    output: results/[^/]+/([^,\s]+)", output, flags=re.MULTILINE)
        return {re.sub(r"\.(parquet|txt|html)$", "", path) for path in found}

    def configure(self, change) -> None:
        """Apply `change` to the configuration, as a user would edit the file."""
        path = self.path / "config" / "config.yaml"
        config = yaml.safe_load(path.read_text())
        change(config)
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.path / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    def append(self, file: str, text: str) -> None:
        path = self.path / file
        path.write_text(path.read_text() + text)

    def tables(self, timed: bool = False) -> dict[str, bytes]:
        """The content of every table; of those that hold times only if asked, as two runs may differ in them."""
        return {
            str(path.relative_to(self.results)): path.read_bytes()
            for path in self.results.rglob("*.parquet")
            if timed or path.stem not in timed_tables()
        }

    def copy(self, path: Path, keep_results: bool = True) -> "Checkout":
        """A copy with all times kept, as snakemake goes by them; the weights cache is shared."""
        leave = () if keep_results else ("results", ".snakemake", "logs")
        shutil.copytree(self.path, path, symlinks=True, ignore=lambda folder, names: set(leave) & set(names))
        return Checkout(path)

    def kill(self, process: subprocess.Popen) -> None:
        """End snakemake and all its scripts at once, without a chance to clean up."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def make_model(folder: Path, model_type: str, **changes) -> None:
    """A tiny random model with a byte-level tokenizer, as a folder source."""
    import random_models
    import tokenizers

    variant = random_models.VARIANTS[model_type]
    folder.mkdir(parents=True)
    tokenizer = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    corpus = ["The king gave the crown to the queen of the country, and the city is the capital."] * 4
    tokenizer.train_from_iterator(corpus, vocab_size=300, min_frequency=2)
    random_models.build(variant | {"vocab_size": tokenizer.get_vocab_size()} | changes, folder, seed=len(folder.name))
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_model(folder / "alpha", "llama")
    make_model(folder / "beta", "gpt2")
    return folder


def lay_out(path: Path, models: Path) -> Checkout:
    """A fresh checkout, as after a clone, with the tiny models beside it."""
    path.mkdir(parents=True, exist_ok=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, path / part, ignore=ignore)
        else:
            shutil.copy2(ROOT / part, path / part)
    shutil.copytree(models, path / "models")
    (path / "passages").mkdir()
    (path / "passages" / "king.txt").write_text("The king gave the crown to the queen, and the city is the capital.")
    (path / "config").mkdir()
    (path / "config" / "config.yaml").write_text(yaml.safe_dump(CONFIG, sort_keys=False))
    return Checkout(path)


@pytest.fixture
def fresh(tmp_path, models) -> Checkout:
    """Nothing has run yet."""
    return lay_out(tmp_path / "checkout", models)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, models) -> Checkout:
    """The one full run that the tests share. Do not change it: take `done`."""
    checkout = lay_out(tmp_path_factory.mktemp("undisturbed") / "checkout", models)
    checkout.run()
    return checkout


@pytest.fixture
def done(tmp_path, undisturbed) -> Checkout:
    """A copy of the full run."""
    return undisturbed.copy(tmp_path / "checkout")
