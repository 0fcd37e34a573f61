"""The room of `sink`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.sink.settings import SinkStage

ROOM = Room(
    place=200,
    about="What position 0 is needed for.",
    heading="What the first token is for",
    settings=SinkStage,
    stages={
        "sink": Stage("What is position 0 needed for: its value, the normalisation, or the token that stands there?"),
    },
)
