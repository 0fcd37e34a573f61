"""The room of `quantization_quality`, `quantization_timing`, `quantization` and `quantization_error`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.quantization.settings import QuantizationStage

ROOM = Room(
    place=240,
    about="Quantization: its quality, its times and its errors.",
    heading="What fewer bits cost and save",
    settings=QuantizationStage,
    stages={
        "quantization_quality": Stage(
            "What do fewer bits cost in answers, and what do they save in bytes, by the formula and in a file?"
        ),
        "quantization_timing": Stage(
            "How fast do packed codes run, and how much memory do they take, beside float32 and bfloat16?", timed=True
        ),
        "quantization": Stage("Bytes, answers and times of every scheme, side by side", after="tables", timed=True),
        "quantization_error": Stage("How far does each matrix move, and how many groups hold an outlier?"),
    },
)
