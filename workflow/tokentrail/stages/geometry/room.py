"""The room of `geometry`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.geometry.settings import GeometryStage

ROOM = Room(
    place=40,
    about="The token table as vectors.",
    heading="Tokens as vectors",
    settings=GeometryStage,
    stages={
        "geometry": Stage(
            "Which rows of the token table are long, and which point the same way, beside random ones?", after="weights"
        ),
    },
)
