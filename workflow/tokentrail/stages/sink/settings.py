"""What `sink` is asked."""

from __future__ import annotations

from tokentrail.declare.settings import PromptsStage, Text


class SinkStage(PromptsStage):
    """What position 0 is needed for."""

    replacement: Text = "A"
    """Text whose first token replaces the first token."""
