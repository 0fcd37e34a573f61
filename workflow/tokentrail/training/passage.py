"""A passage for the reference models: their kind of text, of which they read nothing."""

from __future__ import annotations

from typing import Any

from tokentrail.training.text import Parts, Writer


def passage(settings: dict[str, Any], parts: Parts) -> str:
    """One text of interleaved stories, with names and pairs of sentences that are held out, and a newline at its end.

    Sentences of filler are of the patterns that the models learned. Facts are left out: a training text may hold any.
    """
    writer = Writer(parts, settings["seed"], count=lambda text: len(text.split()), held_out=True)
    return writer.stories(settings["stories"], settings["words"]).text + "\n"
