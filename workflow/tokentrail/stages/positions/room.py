"""The room of `positions`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.positions.settings import PositionsStage

ROOM = Room(
    place=50,
    about="How position enters.",
    heading="How position enters",
    settings=PositionsStage,
    stages={
        "positions": Stage("How does position enter: by rotation, by a table, or not at all?", after="weights"),
    },
)
