"""A trained model as a checkpoint of its family, and back: config.json, model.safetensors and the tokenizer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Pieces
from torch import Tensor

from tokentrail.training.vocabulary import END
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import Loaded, load_model
from tokentrail.weights.tokenizer import open_tokenizer

FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def complete(config: dict[str, Any], tokenizer: Pieces) -> dict[str, Any]:
    """The config.json: `config` with the vocabulary and what loaders ask for."""
    end = tokenizer.token_to_id(END)
    return config | {
        "vocab_size": tokenizer.get_vocab_size(),
        "bos_token_id": end,
        "eos_token_id": end,
        "torch_dtype": "float32",
    }


def save(folder: Path, config: dict[str, Any], parameters: dict[str, Tensor], tokenizer: Pieces) -> None:
    """Write `FILES` into `folder`; `config` is a complete config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().contiguous() for name, tensor in parameters.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # readable like the rest, whatever the library leaves
    tokenizer.save(str(folder / "tokenizer.json"))
    of_transformers = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": END, "eos_token": END}
    for name, content in (("config.json", config), ("tokenizer_config.json", of_transformers)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def opened(folder: Path, model: str) -> Loaded:
    """The model in `folder`, in float32 on the CPU, ready to be measured."""
    tensors = folder / "model.safetensors"
    checkpoint = Checkpoint(
        config=json.loads((folder / "config.json").read_text(encoding="utf-8")),
        tensor_files=(tensors,),
        tokenizer_file=folder / "tokenizer.json",
        sha256=hashlib.sha256(tensors.read_bytes()).hexdigest(),
        files={name: folder / name for name in FILES},
    )
    return Loaded(
        model=load_model(checkpoint, block=True),
        tokenizer=open_tokenizer(checkpoint, "tokenizer", model),
        checkpoint=checkpoint,
        device=torch.device("cpu"),
    )
