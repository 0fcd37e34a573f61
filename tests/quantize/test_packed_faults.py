"""Parity of packed and simulated must catch every one of these: single changes of one line in the packed path."""

from __future__ import annotations

import importlib
from typing import NamedTuple

import pytest
import torch
from mutation import mutated


class Fault(NamedTuple):
    what: str
    variant: str  # a model that has the part
    scheme: dict
    file: str
    old: str
    new: str


INT4 = {"bits": 4, "group_size": 32, "scales": "float32"}
MIDDLES = INT4 | {"symmetric": False}
INT8 = {"bits": 8, "group_size": "channel", "scales": "float32"}
CELLS, PACKED, PACKING = (f"quantize/{name}.py" for name in ("cells", "packed", "packing"))

FAULTS = [
    Fault(
        "nibbles in the other order",
        "llama",
        INT4,
        PACKING,
        "words >> steps(of_word, bits,",
        "words >> bits * (of_word - 1) - steps(of_word, bits,",
    ),
    Fault(
        "scales of the next group",
        "llama",
        INT4,
        CELLS,
        "pairs = torch.stack([scales,",
        "pairs = torch.stack([scales.roll(1, 1),",
    ),
    Fault(
        "scales of the next row",
        "llama",
        INT4,
        CELLS,
        "pairs = torch.stack([scales,",
        "pairs = torch.stack([scales.roll(1, 0),",
    ),
    Fault(
        "scales transposed",
        "llama",
        INT4,
        CELLS,
        "transpose(0, 1).contiguous()",
        "transpose(0, 1).contiguous().view(-1, 2).view(pairs.shape[0], -1, 2).transpose(0, 1).contiguous()",
    ),
    Fault(
        "middle left out",
        "llama",
        MIDDLES,
        CELLS,
        "torch.zeros_like(scales) if middles is None else middles]",
        "torch.zeros_like(scales)]",
    ),
    Fault(
        "middle is the value of the lowest code",
        "llama",
        MIDDLES,
        CELLS,
        "torch.zeros_like(scales) if middles is None else middles]",
        "middles + 8 * scales]",
    ),
    Fault("scale and middle swapped", "llama", MIDDLES, CELLS, "dim=-1)\n    pairs", "dim=-1).flip(-1)\n    pairs"),
    Fault(
        "codes off by one", "llama", INT4, CELLS, ".int() - scheme.lowest, 1)", ".int() - scheme.lowest + 1 & 15, 1)"
    ),
    Fault(
        "group size of the scheme ignored",
        "llama",
        INT4,
        CELLS,
        "pairs, group_length(into, scheme), out",
        "pairs[: into // 64], 64 if into % 64 == 0 else 32, out",
    ),
    Fault(
        "bias forgotten",
        "llama-biases",
        INT4,
        CELLS,
        "return y if self.bias is None else y + self.bias\n\n\nclass PackedInt8",
        "return y\n\n\nclass PackedInt8",
    ),
    Fault(
        "scales of 8 bits shared",
        "llama",
        INT8,
        CELLS,
        "scales[:, 0].contiguous()",
        "scales[:1, 0].expand(len(scales)).contiguous()",
    ),
    Fault(
        "8-bit codes unsigned",
        "llama",
        INT8,
        CELLS,
        "torch.cat([unpack(block, 8, into)",
        "torch.cat([unpack(block, 8, into) // 2 * 2",
    ),
    Fault(
        "looked-up rows with the scales of others",
        "llama",
        INT4,
        CELLS,
        "of_groups[rows].float()",
        "of_groups[rows.flip(0)].float()",
    ),
    Fault(
        "looked-up rows without their middles", "llama", MIDDLES, CELLS, "codes * scales + middles", "codes * scales"
    ),
    Fault(
        "looked-up groups interleaved",
        "llama",
        INT4,
        CELLS,
        ".repeat_interleave(group_length(width, scheme), dim=1)",
        ".repeat(1, group_length(width, scheme))",
    ),
    Fault(
        "head of a tied table not packed from it",
        "qwen3-tied-bias",
        INT4,
        PACKED,
        "linear(TOKENS if shared else HEAD, None)",
        "linear('layers.0.mixer.qkv.weight', None)",
    ),
    Fault(
        "another layer's codes",
        "llama",
        INT4,
        PACKED,
        "for i, layer in enumerate(model.layers):",
        "for i, layer in enumerate(model.layers[:1] * len(model.layers)):",
    ),
    Fault(
        "norms packed away",
        "llama",
        INT4,
        PACKED,
        "return stored(name).clone() if name in shapes(spec)",
        "return torch.ones_like(stored(name)) if name in shapes(spec)",
    ),
]


def apart(pair, scheme: dict, folder) -> float:
    """Largest difference of packed and simulated logits, as a share of the largest logit, of a fresh library."""
    packed, simulate, parts, schemes, frame, checkpoint = (
        importlib.import_module(f"tokentrail.{name}")
        for name in (
            "quantize.packed",
            "quantize.simulate",
            "quantize.parts",
            "quantize.scheme",
            "forward.frame",
            "weights.checkpoint",
        )
    )
    load = importlib.import_module("tokentrail.weights.load").load_model
    files = tuple(sorted(pair.folder.glob("model*.safetensors")))
    own = checkpoint.Checkpoint(pair.config, files, tokenizer_file=None, sha256="0" * 64, files={})
    plain = load(own)
    tensors, chosen = parts.chosen(plain.spec, ["all"]), schemes.Scheme(**scheme)
    path = folder / "packed.safetensors"
    packed.write_packed(own, chosen, tensors, path)
    with torch.inference_mode():
        said = frame.forward(packed.read_packed(path), pair.ids)
        expected = frame.forward(simulate.Simulation(plain, own).apply(chosen, tensors), pair.ids)
    return ((said - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault_is_caught(packable, tmp_path, fault):
    pair = packable(fault.variant)
    with mutated(fault.file, fault.old, fault.new):
        try:
            found = apart(pair, fault.scheme, tmp_path)
        except (RuntimeError, IndexError):
            return  # caught by shape
    assert not found < 1e-3


@pytest.mark.parametrize("scheme", [INT4, MIDDLES, INT8], ids=["int4", "middles", "int8"])
def test_without_a_fault_they_agree(packable, tmp_path, scheme):
    assert apart(packable("llama"), scheme, tmp_path) < 2e-5
