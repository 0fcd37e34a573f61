"""Other models of a hub, by naming them: shapes of well-known models with narrow random weights, through the gate."""

import subprocess
import sys

import families.llama
import pytest
import random_models
import yaml
from hub_server import Repository, serve

LLAMA3 = {"rope_parameters": families.llama.LLAMA3 | {"rope_theta": 500000.0}, "rope_theta": None}
GPT2_MEDIUM = {"n_embd": 64, "n_layer": 24, "n_head": 16}
SHAPES = {
    "llama-3": random_models.VARIANTS["llama3-scaling"] | LLAMA3 | {"num_hidden_layers": 16},
    "qwen2": random_models.VARIANTS["qwen2"] | {"num_hidden_layers": 24, "tie_word_embeddings": True},
    "smollm2": random_models.VARIANTS["llama-tied"] | {"num_hidden_layers": 30, "rope_theta": 100000.0},
    "gpt2-medium": random_models.VARIANTS["gpt2"] | GPT2_MEDIUM,
    "granite-4.0-350m": random_models.VARIANTS["granite-dense"]
    | {"num_hidden_layers": 28, "layer_types": ["attention"] * 28, "tie_word_embeddings": True},
}
"""Layers, heads and positions of each family's best known models; widths that run in seconds."""


@pytest.fixture
def uploads(fresh, models, tmp_path):
    """One repository for each shape, with the tiny tokenizer of the other tests."""
    from safetensors.torch import load_file, save_file

    tokenizer = models / "alpha/tokenizer.json"
    vocabulary = len(yaml.safe_load(tokenizer.read_text())["model"]["vocab"])
    repositories = []
    for name, shape in SHAPES.items():
        folder = tmp_path / "uploads" / name
        random_models.build(shape | {"vocab_size": vocabulary}, folder, seed=len(name))
        path = folder / "model.safetensors"
        save_file({key: tensor.bfloat16() for key, tensor in load_file(path).items()}, path, metadata={"format": "pt"})
        files = {each: (folder / each).read_bytes() for each in ("config.json", "model.safetensors")}
        repositories.append(Repository(f"owner/{name}", files | {"tokenizer.json": tokenizer.read_bytes()}))
    return repositories


@pytest.mark.slow
def test_any_model_of_a_supported_family_runs_by_its_name(fresh, uploads):
    def name_them(config):
        config["models"] = {
            name: {"label": name, "source": {"kind": "hub", "repository": f"owner/{name}"}} for name in SHAPES
        }

    fresh.configure(name_them)
    targets = [f"results/tiny/{name}/{file}" for name in SHAPES for file in ("parity.passed", "lens.parquet")]
    with serve(*uploads) as hub:
        environment = fresh.environment | {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(fresh.path / "hf"),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "NO_PROXY": "127.0.0.1,localhost",
        }
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *targets]
        done = subprocess.run(
            command,
            cwd=fresh.path,
            env=environment,
            text=True,
            timeout=1800,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    assert done.returncode == 0, done.stdout[-4000:]
    assert all((fresh.path / target).is_file() for target in targets)
