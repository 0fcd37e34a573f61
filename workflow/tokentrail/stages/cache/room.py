"""The room of `cache`."""

from tokentrail.declare.room import Room, Stage
from tokentrail.stages.cache.settings import CacheStage

ROOM = Room(
    place=210,
    about="Decode with a cache, and the cache's bytes.",
    heading="Decoding with a cache",
    settings=CacheStage,
    stages={
        "cache": Stage(
            "Does decoding with a cache say the same as computing everything anew, and what does the cache hold?"
        ),
    },
)
