"""The room of `weights`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.weights.settings import WeightsStage

ROOM = Room(
    place=280,
    about="Files of the models.",
    heading="Where the weights come from",
    settings=WeightsStage,
    stages={
        "weights": Stage("Which files exactly, from where, with which hashes?", after="weights"),
    },
)
