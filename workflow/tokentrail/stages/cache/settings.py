"""What `cache` is asked."""

from __future__ import annotations

from tokentrail.declare.settings import Count, PromptsStage


class CacheStage(PromptsStage):
    """Decode with a cache against full recomputation."""

    steps: Count = 5
    """Tokens that are decoded greedily after each prompt."""
    pieces: list[Count] = [1, 3, 8]
    """Tokens in a piece of a chunked prefill; the whole prompt in one piece is always measured too."""
