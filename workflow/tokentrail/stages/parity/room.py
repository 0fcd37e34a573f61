"""The room of `parity`, `parity_layers` and `parity_gate`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.parity.settings import ParityStage

ROOM = Room(
    place=60,
    about="Parity gate.",
    heading="Is the forward pass right?",
    settings=ParityStage,
    stages={
        "parity": Stage(
            "Does our pass compute what transformers computes, and which of the two is nearer to float64?",
            after="weights",
        ),
        "parity_layers": Stage("If they part, at which layer and site?", after="weights"),
        "parity_gate": Stage("May the model be looked into?", after="tables", file="parity.passed"),
    },
)
