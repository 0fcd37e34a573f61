"""The room of `block`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import PromptsStage

ROOM = Room(
    place=120,
    about="One layer, step by step.",
    heading="One layer, step by step",
    settings=PromptsStage,
    stages={
        "block": Stage("What is computed in one layer, step by step, and is it what the model's own pass computes?"),
    },
)
