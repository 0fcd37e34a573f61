"""The passage of the reference models' kind: made again byte for byte, held out, and read by all three."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from tokentrail.stages.quantization.passages import expected, open_passage, read, unreadable
from tokentrail.training import settings
from tokentrail.training.checkpoint import opened
from tokentrail.training.passage import passage
from tokentrail.training.text import is_held_out

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "resources" / "passages" / "held_out_stories.txt"
REFERENCE = settings.read(settings.FILE)
CAPITAL = re.compile(r"(?<![.] )(?<!^)\b[A-Z][a-z]+")  # a capital letter within a sentence: a name or a day


def test_it_is_made_again_byte_for_byte(parts):
    assert FILE.read_bytes() == passage(settings.of_stage(REFERENCE, "passage"), parts).encode()


def test_its_seed_is_that_of_nothing_that_was_trained_or_evaluated():
    used = {REFERENCE.vocabulary.text_seed, REFERENCE.evaluation.seed}
    used |= {model.training.seed for model in REFERENCE.models.values()}
    assert REFERENCE.passage.seed not in used


def test_its_names_are_held_out(parts):
    text = FILE.read_text()
    days = set(parts.raw["fillers"]["slots"]["day"])
    names = {word for word in CAPITAL.findall(text) if word not in days}
    assert len(names) > 10 and not names & set(parts.learned)
    assert all(name in parts.raw["names"]["held_out"] or is_held_out(name) for name in names)


def test_its_stories_are_of_pairs_that_are_held_out(parts):
    def told(sentence: str, text: str) -> int:
        pattern = re.sub(r"\\\{\w\\\}", r"\\w+", re.escape(sentence))
        return len(re.findall(pattern, text))

    text = FILE.read_text()
    held_out = parts.held_out_templates
    assert sum(told(tail, text) for tail in {t.tail for t in held_out}) == REFERENCE.passage.stories
    others = {t.tail for t in parts.templates} - {t.tail for t in held_out}
    assert not any(told(tail, text) for tail in others)


@pytest.mark.parametrize("model", list(REFERENCE.models))
def test_they_read_it_and_cannot_read_prose(model):
    loaded = opened(ROOT / "resources" / "reference" / model, model)
    spec = loaded.model.spec
    refused = {}
    with torch.inference_mode():
        for path in sorted(FILE.parent.glob("*.txt")):
            text = open_passage(loaded, path.stem, str(path), 512)
            nll = read(loaded.model, text, expected(loaded.model, text)).nll.mean()
            refused[path.stem] = bool(unreadable(model, path.stem, nll, spec.vocabulary))
    assert refused == {"held_out_stories": False, "island_survey": True, "tide_mill": True}


def test_the_folder_says_what_each_passage_is():
    said = (FILE.parent / "README.md").read_text()
    assert all(f"`{path.name}`" in said for path in FILE.parent.glob("*.txt"))
