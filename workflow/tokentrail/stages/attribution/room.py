"""The room of `attribution`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import PromptsStage

ROOM = Room(
    place=160,
    about="Direct logit attribution.",
    heading="Which parts speak for the answer",
    settings=PromptsStage,
    stages={
        "attribution": Stage(
            "How much does each head and sub-layer add to the logit of the answer, and of its closest rival?"
        ),
    },
)
