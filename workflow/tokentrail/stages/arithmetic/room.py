"""The room of `arithmetic`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.arithmetic.settings import ArithmeticStage

ROOM = Room(
    place=270,
    about="Sizes and work.",
    heading="Sizes and work, by arithmetic",
    settings=ArithmeticStage,
    stages={
        "arithmetic": Stage(
            "What follows from the shapes alone: parameters part by part, payloads, cache, activations, operations?",
            after="weights",
        ),
    },
)
