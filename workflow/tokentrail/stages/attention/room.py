"""The room of `attention`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import PromptsStage

ROOM = Room(
    place=150,
    about="Every attention head's last row.",
    settings=PromptsStage,
    stages={
        "attention": Stage("Where does every attention head look from the last position?"),
    },
)
