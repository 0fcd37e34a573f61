"""How position enters a model: by rotating queries and keys, by a table of positions, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import torch
from torch import Tensor

from tokentrail import tables
from tokentrail.forward import spec as specs
from tokentrail.forward.cells.rope import frequencies, rotate, rotation
from tokentrail.forward.families import read_spec
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.rows import StoredTable
from tokentrail.weights.tokenizer import Tokenizer


@torch.inference_mode()
def measure(checkpoint: Checkpoint, tokenizer: Tokenizer, settings: dict[str, Any]) -> pl.DataFrame:
    """Table `positions`; no rows for a model that has no position encoding."""
    spec = read_spec(checkpoint.config)
    rotated = dict.fromkeys(cell.rotation for cell in spec.cells if cell.rotation is not None)
    rows = [row for rotation in rotated for row in rotations(*rotation, spec.trained_positions, settings)]
    if spec.learned_positions is not None:
        rows += [*learned(StoredTable(checkpoint, "positions")), *token_norms(checkpoint, tokenizer, spec, settings)]
    empty = {"prompt": "", "query_position": None, "key_position": None}
    return tables.frame("positions", [empty | row for row in rows], model=settings["model"])


def rotations(
    rope: specs.Rope, head_dim: int, channels: int, longest: int, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Scores of one random query and key (PyTorch's generator, query first), and what rotation does on average.

    Of head_dim channels the first `channels` are rotated.
    """
    generator = torch.Generator().manual_seed(settings["seed"])
    q, k = (torch.randn(1, 1, head_dim, generator=generator) for _ in range(2))
    yield {"probe": "unrotated", "offset": 0, "score": (q * k).sum().item()}
    for query, key in settings["pairs"]:
        score = rotated_score(q, k, query, key, rope, channels)
        at = {"offset": query - key, "query_position": query, "key_position": key}
        yield {"probe": "rotation"} | at | {"score": score}
    still = torch.zeros((head_dim - channels) // 2, dtype=torch.float64)
    turns = torch.cat([frequencies(rope, channels), still])  # (head_dim / 2)
    for offset in doubling(longest):
        yield {"probe": "expected_rotation", "offset": offset, "score": (offset * turns).cos().mean().item()}


def rotated_score(q: Tensor, k: Tensor, query: int, key: int, rope: specs.Rope, channels: int) -> float:
    """The dot product of q and k (1, 1, head_dim) after each is rotated to its position; not scaled."""

    def at(x: Tensor, position: int) -> Tensor:
        return rotate(x, *(part[0] for part in rotation(torch.tensor([[position]]), rope, channels, x.dtype)))

    return (at(q, query) * at(k, key)).sum().item()


def doubling(longest: int) -> list[int]:
    """Distances from 0 to `longest`, four to each doubling beyond the first few."""
    found = {0} | {round(2 ** (step / 4)) for step in range(4 * longest.bit_length())}
    return sorted(distance for distance in found if distance < longest)


def learned(table: StoredTable) -> Iterator[dict[str, Any]]:
    """Length of every row, and the mean cosine of rows at a distance."""
    rows = torch.cat(list(table.blocks()))  # a table of positions is small
    lengths = rows.norm(dim=1)
    for position, length in enumerate(lengths.tolist()):
        yield {"probe": "position_norm", "offset": position, "score": length}
    unit = rows / lengths.clamp(min=torch.finfo(rows.dtype).tiny)[:, None]
    for offset in doubling(table.rows):
        cosine = (unit[: table.rows - offset] * unit[offset:]).sum(dim=1).mean()
        yield {"probe": "position_cosine", "offset": offset, "score": cosine.item()}


def token_norms(
    checkpoint: Checkpoint, tokenizer: Tokenizer, spec: specs.Spec, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Length of the token's row at each position of each prompt, as it is added to the position's."""
    table = StoredTable(checkpoint, "tokens")
    for name, prompt in settings["prompts"].items():
        for position, token in enumerate(tokenizer.encode(prompt["text"])):
            length = (table.row(token) * spec.embedding_scale).norm().item()
            yield {"probe": "token_norm", "prompt": name, "offset": position, "score": length}
