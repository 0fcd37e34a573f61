"""One colour, dash and shape for each model, the same in every chart and in the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tokentrail.charts import colour
from tokentrail.charts.text import printable

# All stand out from the paper. The first four are apart in lightness as well as in hue, for greyscale and for
# colour-blind readers; with more models, dashes and shapes have to help.
COLOURS = ("#12336b", "#cc7f0c", "#2c8170", "#a8327f", "#6391d4", "#7a6a10", "#b784ab", "#222222")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [4, 2], [1, 3], [12, 4], [6, 2, 1, 2])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")


@dataclass(frozen=True)
class Look:
    """How a model is drawn and named, in every chart."""

    label: str
    note: str
    colour: str
    dash: list[int]
    shape: str

    @property
    def ink(self) -> str:
        """The colour for text: dark enough to be read."""
        return colour.readable(self.colour)


def looks(settings: dict[str, Any]) -> dict[str, Look]:
    """The look of each model, by its place in the configuration. Labels that two models share get the name too."""
    models = settings["models"]
    shared = Counter(model["label"] for model in models.values())
    return {
        name: Look(
            label=printable(f"{model['label']} ({name})" if shared[model["label"]] > 1 else model["label"]),
            note=printable(model["weights_note"]),
            colour=COLOURS[index % len(COLOURS)],
            dash=DASHES[index % len(DASHES)],
            shape=SHAPES[index % len(SHAPES)],
        )
        for index, (name, model) in enumerate(models.items())
    }
