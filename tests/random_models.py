"""Random transformers models of every family and variant, every parameter randomised, saved as real checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
import transformers
from families import FULL_SHAPES, VARIANTS
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import load_model
from torch import Tensor

__all__ = ["FULL_SHAPES", "VARIANTS", "Pair", "build"]


transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


@dataclass
class Pair:
    """The same weights twice: a transformers model, and the checkpoint that ours is loaded from."""

    reference: torch.nn.Module
    folder: Path
    config: dict

    @cached_property
    def ids(self) -> Tensor:
        """Two rows, longer than one chunk of the scan: (2, 150)."""
        return torch.randint(0, self.config["vocab_size"], (2, 150), generator=torch.Generator().manual_seed(1))

    @cached_property
    def logits(self) -> Tensor:
        """What the reference says of them: (2, 150, vocabulary)."""
        with torch.inference_mode():
            return self.reference(self.ids, use_cache=False).logits

    @property
    def checkpoint(self) -> Checkpoint:
        files = tuple(sorted(self.folder.glob("*.safetensors")))
        return Checkpoint(self.config, files, tokenizer_file=None, sha256="0" * 64, files={})

    def ours(self, dtype: torch.dtype = torch.float32, block: bool = False, decode: bool = False):
        return load_model(self.checkpoint, dtype=dtype, block=block, decode=decode)


def build(config: dict, folder: Path, seed: int = 0) -> Pair:
    """A random model of `config` (a config.json as a dict), saved to `folder`, attention in its eager form."""
    config = {key: value for key, value in config.items() if value is not None}
    hf_config = transformers.AutoConfig.for_model(**config)
    hf_config._attn_implementation = "eager"
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(hf_config, attn_implementation="eager").eval()
    randomise(model, seed)
    model.save_pretrained(folder)
    Path(folder, "config.json").write_text(json.dumps(config))
    return Pair(model, Path(folder), config)


@torch.no_grad()
def randomise(model: torch.nn.Module, seed: int) -> None:
    """Every parameter random and of realistic size, because ones and zeros hide faults."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        leaf = name.rsplit(".", 1)[-1]
        if name.endswith("A_log"):
            parameter.copy_(torch.empty(parameter.shape).uniform_(0.0, 2.5, generator=generator))
        elif name.endswith("dt_bias"):
            parameter.copy_(-3 + noise)
        elif "norm" in name or ".ln_" in name or leaf == "D":
            parameter.copy_(noise * 0.3 + (0.0 if leaf == "bias" else 1.0))
        elif leaf == "bias":
            parameter.copy_(noise * 0.3)
        elif "conv1d" in name:
            parameter.copy_(noise * 0.5)
        elif "wte" in name or "wpe" in name:  # rows about 4 long, as GPT-2's are
            parameter.copy_(noise * 4 * parameter.shape[-1] ** -0.5)
        elif "embed_tokens" in name or "lm_head" in name:
            parameter.copy_(noise * parameter.shape[-1] ** -0.5)
        else:
            fan_in = parameter.shape[0] if "h." in name and ".c_" in name else parameter.shape[-1]
            parameter.copy_(noise * fan_in**-0.5)
    model.tie_weights()
