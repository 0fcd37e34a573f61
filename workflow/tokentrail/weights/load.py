"""From a checkpoint on disk to a model in memory: renamed, transposed, joined and converted, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from safetensors import safe_open
from torch import Tensor

from tokentrail.errors import ConfigError, WeightsError
from tokentrail.forward.assemble import assemble
from tokentrail.forward.families import read_spec, recipes
from tokentrail.forward.frame import Model
from tokentrail.forward.reading.config_reader import OVERRIDE
from tokentrail.forward.reading.recipe import TRANSPOSED, Recipe
from tokentrail.forward.shapes import shapes
from tokentrail.forward.spec import Spec
from tokentrail.weights.checkpoint import Checkpoint, open_checkpoint
from tokentrail.weights.tokenizer import Tokenizer, open_tokenizer


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, with the tokenizer and the checkpoint that it came with."""

    model: Model
    tokenizer: Tokenizer
    checkpoint: Checkpoint
    device: torch.device


def load(weights: pl.DataFrame, settings: dict[str, Any], block: bool = True, decode: bool = False) -> Loaded:
    """The model of a `weights` table, in float32, as a stage's settings ask for it (`model`, `bos`, `device`).

    `block` and `decode` as in `load_model`.

    Raises WeightsError or UnsupportedError for a checkpoint that cannot be run, ConfigError for a device that
    is not there.
    """
    checkpoint = open_checkpoint(weights)
    device = usable_device(settings["device"])
    return Loaded(
        model=load_model(checkpoint, device=device, block=block, decode=decode),
        tokenizer=open_tokenizer(checkpoint, settings["bos"], settings["model"]),
        checkpoint=checkpoint,
        device=device,
    )


def usable_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise ConfigError(f"device is {name!r}, which this machine's torch cannot use; set device to cpu") from None
    return device


def load_model(
    checkpoint: Checkpoint,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    block: bool = False,
    decode: bool = False,
) -> Model:
    """The checkpoint as a model of one dtype on one device; `block` and `decode` as in `forward.assemble.assemble`.

    One tensor is read at a time, so that the peak is the model itself and its largest tensor.
    Raises WeightsError for a tensor that is missing, unknown, of a wrong shape, or a tied head that differs from
    the token table; UnsupportedError for a config.json that no family reads.
    """
    spec, stored = named_tensors(checkpoint)

    def tensor(name: str) -> Tensor | None:
        made = stored(name)
        return None if made is None else made.to(device=device, dtype=dtype, copy=True)

    return assemble(spec, tensor, block, decode)


def named_tensors(checkpoint: Checkpoint) -> tuple[Spec, Callable[[str], Tensor | None]]:
    """What the checkpoint is, and its tensors by our names (see `forward.assemble`), in their stored dtype.

    The function reads a tensor anew at every call and gives None for a name that the model does not have.
    Raises as `load_model`.
    """
    spec = read_spec(checkpoint.config)
    files = {name: checkpoint.file_of(name) for name in checkpoint.tensor_names()}
    made_from, useless = recipes(spec, set(files))
    expected = shapes(spec)
    check_names(spec.family, set(files), made_from, useless, tied=spec.tied)

    def stored(name: str) -> Tensor:
        with safe_open(files[name], framework="pt") as file:  # reopened, so that read pages are given back
            return file.get_tensor(name)

    def tensor(name: str) -> Tensor | None:
        if name not in expected:
            return None
        made = made_from[name].ours(stored)
        if made.shape != expected[name]:
            raise WeightsError(
                f"{' + '.join(made_from[name].parts)} has the shape {tuple(made.shape)}, but config.json makes it "
                f"{expected[name]}; the weights and the config.json do not belong together"
            )
        return made

    if spec.tied and "lm_head.weight" in files:
        check_tied(stored("lm_head.weight"), made_from["tokens"].ours(stored))
    return spec, tensor


def turned_tensors(checkpoint: Checkpoint) -> frozenset[str]:
    """Our names of the matrices that the checkpoint stores (in, out)."""
    made_from, _ = recipes(read_spec(checkpoint.config), set(checkpoint.tensor_names()))
    return frozenset(name for name, recipe in made_from.items() if recipe.turn is TRANSPOSED)


def check_names(family: str, stored: set[str], made_from: dict[str, Recipe], useless: set[str], tied: bool) -> None:
    """Every tensor that the family needs must be there, and none that it does not know."""
    needed = {part for recipe in made_from.values() for part in recipe.parts}
    if missing := sorted(needed - stored):
        raise WeightsError(
            f"the checkpoint lacks the tensor {missing[0]} ({len(missing)} missing), which the family {family} needs; "
            f"fetch it again, or correct what config.json says under {OVERRIDE}"
        )
    allowed = needed | useless | ({"lm_head.weight"} if tied else set())
    if unknown := sorted(stored - allowed):
        raise WeightsError(
            f"the checkpoint holds the tensor {unknown[0]} ({len(unknown)} unknown), which the family {family} does "
            f"not use, so the model would not be what its config.json says; correct that under {OVERRIDE}, or choose "
            f"another checkpoint"
        )


def check_tied(head: Tensor, tokens: Tensor) -> None:
    if not torch.equal(head, tokens):
        raise WeightsError(
            "config.json says that the head is tied to the token table, but the stored lm_head.weight differs from "
            f"it; if the head is its own, set tie_word_embeddings: false under {OVERRIDE}"
        )
