"""The room of `mixing`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import PromptsStage

ROOM = Room(
    place=140,
    about="Attention weights and unrolled Mamba2, in full.",
    heading="Who takes from whom",
    settings=PromptsStage,
    stages={
        "mixing": Stage(
            "Which position takes how much from which, in attention and in Mamba2 unrolled to the same shape?"
        ),
    },
)
