"""Where a family's tensors are made in transformers, which is the reference that parity is judged by."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tokentrail.forward.spec import Layer


class Modules(NamedTuple):
    """Modules of a transformers model by their dotted names."""

    layers: str  # the list of layers; a layer's input and output are the stream
    final_norm: str
    sites: Callable[[Layer], dict[str, str]]  # by our site, the module inside a layer that puts out the same
