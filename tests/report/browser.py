"""The page in a browser: Debian's chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

WIDE, NARROW = 1280, 390
"""Widths of a laptop's and of a telephone's window, in CSS pixels."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW = "no browser: apt-get install chromium, or name one in TOKENTRAIL_BROWSER, to test the page as it is seen"


@contextmanager
def browser() -> Iterator:
    """A running browser. Without any, the test is skipped; one that is named and does not start is a failure."""
    path = os.environ.get("TOKENTRAIL_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(HOW)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=path, args=["--disable-gpu", "--disable-background-networking"]
        )
        yield running
        running.close()
