"""The room of `merges`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.merges.settings import MergesStage

ROOM = Room(
    place=30,
    about="Byte-level BPE, replayed.",
    heading="How a token is built",
    settings=MergesStage,
    stages={
        "merges": Stage("In which steps is a word put together from its bytes?", after="weights"),
    },
)
