"""Where a pass first makes a number that its format cannot hold."""

from __future__ import annotations

from torch import Tensor

from tokentrail.forward.frame import Model, forward
from tokentrail.forward.taps import Tap


class Overflow(Tap):
    """Remembers the first site and layer, in the order of the pass, whose tensor holds NaN or infinity."""

    def __init__(self):
        self.first: tuple[str, int] | None = None

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        self.see(site, layer, tensor)
        return tensor

    def see(self, site: str, layer: int, tensor: Tensor) -> None:
        if self.first is None and not tensor.isfinite().all():
            self.first = site, layer

    def __str__(self) -> str:
        if self.first is None:
            return "nowhere"
        site, layer = self.first
        return f"first at layer {layer}, site {site}"


def overflow(model: Model, ids: Tensor) -> Overflow:
    """Where our pass over ids (rows, tokens) overflows."""
    found = Overflow()
    forward(model, ids, tap=found)
    return found
