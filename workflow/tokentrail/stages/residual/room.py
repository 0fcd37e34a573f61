"""The room of `residual`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import PromptsStage

ROOM = Room(
    place=110,
    about="Sizes along the stream.",
    heading="How the stream grows",
    settings=PromptsStage,
    stages={
        "residual": Stage("How does the stream grow, and what does each layer add to it?"),
    },
)
