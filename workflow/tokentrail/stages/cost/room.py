"""The room of `cost`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.cost.settings import CostStage

ROOM = Room(
    place=230,
    about="Price of a million tokens.",
    settings=CostStage,
    stages={
        "cost": Stage(
            "What do a million tokens cost at an assumed price, and how long is each step waited for?",
            after="tables",
            timed=True,
        ),
    },
)
