"""The room of `reproduction`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.reproduction.settings import ReproductionStage

ROOM = Room(
    place=10,
    about="Published figures.",
    heading="What reproduces",
    settings=ReproductionStage,
    stages={
        "reproduction": Stage(
            "Which published figures does this run reproduce, which differ, and which were not run, and why?",
            after="tables",
            spans_models=True,
        ),
    },
)
