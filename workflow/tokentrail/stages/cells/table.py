"""The table `cells`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, text


class Cells(Table):
    """The model's frame and cells, as the forward pass reads them: what differs between models."""

    part = text("`embed`, `mixer`, `ffn`, `norm`, `residual`, `unembed` or `size`")
    cell = text("name of the cell or quantity")
    layers = text("layers that it applies to, as ranges; empty if it is not a layer's")
    detail = text("the numbers that it runs with")
