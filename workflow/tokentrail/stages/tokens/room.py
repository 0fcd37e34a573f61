"""The room of `tokens`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import EveryPromptStage

ROOM = Room(
    place=20,
    about="Tokens.",
    heading="The text as tokens",
    settings=EveryPromptStage,
    stages={
        "tokens": Stage("What does the tokenizer make of the prompt?", after="weights"),
    },
)
