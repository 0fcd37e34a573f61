"""Parity of packed and simulated must catch every one of these: single changes in the packed path."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from planting import Plant, instead
from tokentrail.forward import frame
from tokentrail.quantize import cells, packed, parts
from tokentrail.quantize.groups import group_length
from tokentrail.quantize.scheme import Scheme
from tokentrail.quantize.simulate import Simulation
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import load_model

INT4 = {"bits": 4, "group_size": 32, "scales": "float32"}
MIDDLES = INT4 | {"symmetric": False}
INT8 = {"bits": 8, "group_size": "channel", "scales": "float32"}


class Fault(NamedTuple):
    what: str
    variant: str  # a model that has the part
    scheme: dict
    plant: Plant


def made_of(change: Callable) -> Plant:
    """A linear cell is made of other bytes: `change` gives codes, scales and middles."""
    return instead(packed, "packed_linear", lambda linear: lambda c, s, m, *rest: linear(*change(c, s, m), *rest))


def linears(change: Callable) -> Plant:
    """A linear cell is another one than is made of the bytes."""
    return instead(packed, "packed_linear", lambda linear: lambda *given: change(linear(*given)))


def unpacked(change: Callable) -> Plant:
    """The codes are read otherwise."""
    return instead(cells, "unpack", lambda unpack: lambda stored, bits, n: change(unpack, stored, bits, n))


def by_row_first(cell: cells.PackedInt4) -> cells.PackedInt4:
    """Scales (groups, out, 2) whose bytes lie as (out, groups, 2)."""
    groups, out, _ = cell.scales.shape
    return cell._replace(scales=cell.scales.view(out, groups, 2).transpose(0, 1).contiguous())


def in_groups_of_64(cell: cells.PackedInt4) -> cells.PackedInt4:
    groups = len(cell.scales) // 2
    return cell._replace(scales=cell.scales[:groups].contiguous(), group_size=64) if len(cell.scales) % 2 == 0 else cell


def interleaved(of_groups, rows, width, scheme):
    return None if of_groups is None else of_groups[rows].float().repeat(1, group_length(width, scheme))[:, :width]


def head_from_the_end(read_packed):
    def wrong(path):
        model = read_packed(path)
        return replace(model, head=lambda x: model.head(x).flip(-1))

    return wrong


def of_the_first_layer(with_linears):
    def wrong(model, quantized, linear):
        return with_linears(model, quantized, lambda name, bias: linear(re.sub(r"layers\.\d+", "layers.0", name), bias))

    return wrong


def of_ones(assemble):
    """What is not quantized is stored as ones."""
    return lambda spec, tensor: assemble(spec, lambda name: None if (t := tensor(name)) is None else torch.ones_like(t))


FAULTS = [
    Fault("nibbles in the other order", "llama", INT4, unpacked(lambda unpack, b, *rest: unpack(b << 4 | b >> 4, *rest))),
    Fault("codes off by one", "llama", INT4, unpacked(lambda unpack, *given: (unpack(*given) + 9 & 15) - 8)),
    Fault("scales of the next group", "llama", INT4, made_of(lambda c, s, m: (c, s.roll(1, 1), m))),
    Fault("scales of the next row", "llama", INT4, made_of(lambda c, s, m: (c, s.roll(1, 0), m))),
    Fault("middle left out", "llama", MIDDLES, made_of(lambda c, s, m: (c, s, None))),
    Fault("middle is the value of the lowest code", "llama", MIDDLES, made_of(lambda c, s, m: (c, s, m + 8 * s))),
    Fault("scales of 8 bits shared", "llama", INT8, made_of(lambda c, s, m: (c, s[:1].expand_as(s), m))),
    Fault("scales transposed", "llama", INT4, linears(by_row_first)),
    Fault("scale and middle swapped", "llama", MIDDLES, linears(lambda cell: cell._replace(scales=cell.scales.flip(-1)))),
    Fault("group size of the scheme ignored", "llama", INT4, linears(in_groups_of_64)),
    Fault("bias forgotten", "llama-biases", INT4, linears(lambda cell: cell._replace(bias=None))),
    Fault("8-bit codes without their lowest bit", "llama", INT8, linears(lambda cell: cell._replace(codes=cell.codes // 2 * 2))),
    Fault("looked-up rows with the scales of others", "llama", INT4, instead(cells, "spread", lambda spread: lambda of_groups, rows, *rest: spread(of_groups, rows.flip(0), *rest))),
    Fault("looked-up rows without their middles", "llama", MIDDLES, instead(packed, "PackedTable", lambda table: lambda c, s, m, *rest: table(c, s, None, *rest))),
    Fault("looked-up groups interleaved", "llama", INT4, instead(cells, "spread", lambda _: interleaved)),
    Fault("rows of a tied head in another order", "qwen3-tied-bias", INT4, instead(packed, "read_packed", head_from_the_end)),
    Fault("another layer's codes", "llama", INT4, instead(packed, "with_linears", of_the_first_layer)),
    Fault("norms packed away", "llama", INT4, instead(packed, "assemble", of_ones)),
]  # fmt: skip


def apart(pair, scheme: dict, folder) -> float:
    """Largest difference of packed and simulated logits, as a share of the largest logit."""
    files = tuple(sorted(pair.folder.glob("model*.safetensors")))
    own = Checkpoint(pair.config, files, tokenizer_file=None, sha256="0" * 64, files={})
    plain = load_model(own)
    tensors, chosen = parts.chosen(plain.spec, ["all"]), Scheme(**scheme)
    path = folder / "packed.safetensors"
    packed.write_packed(own, chosen, tensors, path)
    with torch.inference_mode():
        said = frame.forward(packed.read_packed(path), pair.ids)
        expected = frame.forward(Simulation(plain, own).apply(chosen, tensors), pair.ids)
    return ((said - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault_is_caught(packable, tmp_path, fault, monkeypatch):
    fault.plant(monkeypatch)
    assert not apart(packable(fault.variant), fault.scheme, tmp_path) < 1e-3


@pytest.mark.parametrize("scheme", [INT4, MIDDLES, INT8], ids=["int4", "middles", "int8"])
def test_without_a_fault_they_agree(packable, tmp_path, scheme):
    assert apart(packable("llama"), scheme, tmp_path) < 2e-5
