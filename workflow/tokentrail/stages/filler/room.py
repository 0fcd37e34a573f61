"""The room of `filler_sweep` and `long_range`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.filler.settings import FillerStage

ROOM = Room(
    place=180,
    about="Distance: the stages `filler_sweep` and `long_range`.",
    heading="How far away the name may be",
    settings=FillerStage,
    stages={
        "filler_sweep": Stage(
            "Is the name still found when more and more text stands between, with and without attention?"
        ),
        "long_range": Stage(
            "Does attention look back to the name over that distance, and does Mamba2's state still hold it?"
        ),
    },
)
