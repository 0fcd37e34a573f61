"""The room of `census`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.declare.settings import StageSettings

ROOM = Room(
    place=260,
    about="Parameters.",
    heading="Where the parameters are",
    settings=StageSettings,
    stages={
        "census": Stage("Where are the parameters, and in which format are they stored?", after="weights"),
    },
)
