"""The room of `lens`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import PromptsStage

ROOM = Room(
    place=100,
    about="Logit lens.",
    heading="When the answer forms",
    settings=PromptsStage,
    stages={
        "lens": Stage("After which layer does the answer stand?"),
    },
)
