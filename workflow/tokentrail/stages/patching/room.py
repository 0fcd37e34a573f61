"""The room of `patching`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.patching.settings import PatchingStage

ROOM = Room(
    place=190,
    about="Interchange between prompts.",
    heading="Where the name is carried",
    settings=PatchingStage,
    stages={
        "patching": Stage("Which layer and position carry the name, if one prompt is given the other prompt's values?"),
    },
)
