"""Rounded weights, run in float32: what a scheme does to the answers, whether or not a kernel for it exists."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from tokentrail.forward.cells.linear import Linear
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import Model
from tokentrail.quantize.moved import Moved, moved
from tokentrail.quantize.parts import HEAD, TOKENS, splits
from tokentrail.quantize.quantizer import dequantize, quantize
from tokentrail.quantize.scheme import Scheme
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.load import named_tensors, turned_tensors


class Simulation:
    """One float32 model on plain weights, written over in place for each scheme.

    Originals are read from the checkpoint again, one tensor at a time, so that there is never a second copy of the
    model; only a tied table that is quantized in one of its uses gets a table of its own for the other.
    """

    def __init__(self, model: Model, checkpoint: Checkpoint):
        """`model` is the checkpoint loaded in float32 without blocking; it is no longer the caller's to use."""
        self.model = model
        self.spec = read_spec(checkpoint.config)
        _, self.original = named_tensors(checkpoint)
        self.turned = turned_tensors(checkpoint)
        self.changed: frozenset[str] = frozenset()
        self.moved: dict[str, Moved] = {}
        """How far each tensor moved that the last call of `apply` quantized; a tied table once."""

    def apply(self, scheme: Scheme, tensors: frozenset[str]) -> Model:
        """The model with `tensors` quantized and read back, and everything else as in the checkpoint.

        Valid until the next call. Raises QuantizationError if the scheme does not fit one of them.
        """
        model, apart = self.model, splits(self.spec, tensors)
        self.moved = {}
        self.changed |= tensors  # until all is done, so that the next call restores what an error leaves behind
        for name in sorted(self.changed):
            if name == HEAD and self.spec.tied:
                continue
            weights = self.original(name).to(self.where(name).device)
            quantized = name in tensors and not (apart and name == TOKENS)
            self.where(name).copy_(self.rounded(name, weights, scheme) if quantized else weights)
        self.changed = tensors
        if not apart:
            return model
        table = self.rounded(TOKENS, model.tokens, scheme)
        return replace(model, tokens=table) if TOKENS in tensors else replace(model, head=Linear(table))

    def where(self, name: str) -> Tensor:
        """The model's own tensor of that name."""
        match name.split("."):
            case ["layers", layer, sub, matrix, "weight"]:
                return getattr(self.model.layers[int(layer)][sub].cell, matrix).weight
            case ["head", "weight"]:
                return self.model.head.weight
        return getattr(self.model, name)

    def rounded(self, name: str, weights: Tensor, scheme: Scheme) -> Tensor:
        q = quantize(weights, scheme, name in self.turned, name)
        read_back = dequantize(q)
        self.moved[name] = moved(weights, read_back, q.scales)
        return read_back
