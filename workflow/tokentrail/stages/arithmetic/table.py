"""The table `arithmetic`."""

from __future__ import annotations

from tokentrail.declare.columns import Table, count, text


class Arithmetic(Table):
    """Sizes and work that follow from the shapes alone, with the formula of each."""

    subject = text("`model`, or the name of a hypothetical model or payload of the configuration")
    quantity = text("`parameters`, `payload`, `cache`, `activation` or `flops`")
    part = text("part of the model, number format, or what is kept")
    layers = count("layers that hold the part; `value` is for all of them", "layers")
    rows = count("sequences in the batch; 0 where it does not matter", "rows")
    tokens = count("tokens of each; 0 where it does not matter", "tokens")
    value = count("the quantity", "parameters, bytes or operations")
    formula = text("the product that it is, in numbers")
