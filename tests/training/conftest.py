"""The parts of the text and a vocabulary made from a little of it."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer
from tokentrail.training import text
from tokentrail.training.fit import make_vocabulary


@pytest.fixture(scope="session")
def parts() -> text.Parts:
    return text.Parts.read(text.FILE)


@pytest.fixture(scope="session")
def tokenizer(parts) -> Tokenizer:
    return make_vocabulary({"pieces": 1200, "texts": 1500, "words": 80, "text_seed": 0}, parts)
