"""The room of `distribution`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.distribution.settings import DistributionStage

ROOM = Room(
    place=80,
    about="The whole distribution.",
    heading="What narrows the distribution",
    settings=DistributionStage,
    stages={
        "distribution": Stage(
            "How sure is the model, over the whole vocabulary; what narrows it, and what may decoding change?"
        ),
    },
)
