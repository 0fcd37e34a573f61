"""Texts with places in braces, as `{example}The capital of France is`."""

from __future__ import annotations

import re

PLACE = re.compile(r"\{([^{}]*)\}")


def places(template: str) -> list[str]:
    """The names in braces, in order."""
    return PLACE.findall(template)


def filled(template: str, texts: dict[str, str]) -> str:
    """The template with each place's text put in. Raises KeyError for a place without one."""
    return PLACE.sub(lambda found: texts[found[1]], template)
