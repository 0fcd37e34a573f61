"""The room of `next_token`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.next_token.settings import NextTokenStage

ROOM = Room(
    place=70,
    about="First tokens.",
    heading="The next token",
    settings=NextTokenStage,
    stages={
        "next_token": Stage("What comes next, with which probability?"),
    },
)
