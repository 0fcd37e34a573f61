"""The room of `timing`, `timing_summary` and `machine`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.timing.settings import TimingStage

ROOM = Room(
    place=220,
    about="Decode and prefill times: the stages `timing`, `timing_summary` and `machine`.",
    heading="How fast, and how near to the machine’s limits",
    settings=TimingStage,
    stages={
        "timing": Stage(
            "How long do decode and prefill take, in shuffled rounds, and does the machine drift?", timed=True
        ),
        "timing_summary": Stage(
            "Which share of the machine's limits, measured in the same process, is reached?", after="tables", timed=True
        ),
        "machine": Stage("What were the times taken on?", after="tables", timed=True),
    },
)
