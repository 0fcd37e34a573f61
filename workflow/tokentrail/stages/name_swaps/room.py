"""The room of `name_swaps` and `name_swaps_summary`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.name_swaps.settings import NameSwapsStage

ROOM = Room(
    place=90,
    about="Name swaps.",
    heading="Other names in the sentence",
    settings=NameSwapsStage,
    stages={
        "name_swaps": Stage("Is the name in the sentence copied, or does the model favour one name?"),
        "name_swaps_summary": Stage(
            "How often, over many names and sentences, and how certain is that?", after="tables"
        ),
    },
)
