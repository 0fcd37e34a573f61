"""The room of `mlp`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import PromptsStage

ROOM = Room(
    place=130,
    about="Inside the FFN.",
    heading="Inside the FFN",
    settings=PromptsStage,
    stages={
        "mlp": Stage("What stands between the two matrices of each FFN?"),
    },
)
