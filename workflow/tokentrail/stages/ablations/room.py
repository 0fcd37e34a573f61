"""The room of `ablations`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.ablations.settings import AblationsStage

ROOM = Room(
    place=170,
    about="Parts switched off.",
    heading="What if a part is switched off",
    settings=AblationsStage,
    stages={
        "ablations": Stage(
            "Which layers, heads or sets of them does the answer need, whether zeroed, averaged or swapped?"
        ),
    },
)
