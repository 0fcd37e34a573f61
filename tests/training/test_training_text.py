"""The training text: held-out parts stay out, one seed gives one text, every question has its answer."""

from __future__ import annotations

import random
import re
from itertools import islice

import pytest
from tokentrail.training.text import Template, Text, Writer, is_held_out, joined


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture(scope="module")
def texts(parts) -> list[Text]:
    return list(islice(Writer(parts, 7, words).texts(90), 1500))


def test_one_seed_gives_one_sequence(parts):
    def first(seed):
        return list(islice(Writer(parts, seed, words).texts(60), 20))

    assert first(3) == first(3)
    assert first(3) != first(4)


def test_names_are_many_and_held_out_ones_are_apart(parts):
    names = parts.raw["names"]
    common, rare, held_out = (set(names[kind]) for kind in ("common", "rare", "held_out"))
    assert len(common | rare) >= 200
    assert len(held_out) >= 50
    assert not held_out & (common | rare)


def test_no_held_out_name_stands_in_the_text(parts, texts):
    seen = set(re.findall(r"[A-Z]\w+", " ".join(t.text for t in texts)))
    assert not seen & set(parts.raw["names"]["held_out"])
    assert {"Alice", "Carol"} <= seen


def test_made_up_names_are_of_one_half_only(parts):
    rng = random.Random(0)
    learned = {parts.made_up_name(rng, held_out=False) for _ in range(500)}
    kept = {parts.made_up_name(rng, held_out=True) for _ in range(500)}
    assert len(learned) > 300 and len(kept) > 100
    assert not learned & kept
    assert all(map(is_held_out, kept)) and not any(map(is_held_out, learned))


def test_held_out_pairs_are_made_of_halves_that_are_learned(parts):
    assert not set(parts.templates) & set(parts.held_out_templates)
    assert {t.head for t in parts.held_out_templates} <= {t.head for t in parts.templates}
    assert {t.tail for t in parts.held_out_templates} <= {t.tail for t in parts.templates}
    assert Template("{a} gave {b} a {o}.", "{b} gave the {o} back to", "a", "things") in parts.held_out_templates


def test_no_held_out_pair_stands_in_the_text(parts, texts):
    def pattern(template: Template) -> re.Pattern:
        whole = re.escape(f"{template.head} {template.tail}").replace(r"\ ", " ")
        seen: set[str] = set()

        def group(match):
            name = match[1]
            back = f"(?P={name})" if name in seen else rf"(?P<{name}>\w+)"
            seen.add(name)
            return back

        head, tail = re.sub(r"\\\{(\w)\\\}", group, whole).split(r"\. ", 1)
        return re.compile(rf"{head}\..*{tail} (?P=a)\b")

    patterns = [pattern(t) for t in parts.held_out_templates]
    written = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to Alice."
    assert any(p.search(written) for p in patterns)
    assert not [t.text for t in texts if any(p.search(t.text) for p in patterns)]


def test_no_held_out_filler_stands_in_the_text(parts, texts):
    whole = " ".join(t.text for t in texts)
    for paragraph in parts.raw["fillers"]["held_out"].values():
        for sentence in re.findall(r"[^.]+\.", " ".join(paragraph.split())):
            assert sentence.strip() not in whole


def test_every_answer_stands_earlier_in_the_text(texts):
    facts = 0
    for text in texts:
        assert text.answers
        for start, end in text.answers:
            name = text.text[start:end]
            assert re.fullmatch(r" \w+", name)
            facts += "capital of" in text.text
            assert "capital of" in text.text or name in f" {text.text[:start]}", text
    assert facts > 0


def test_a_tail_asks_for_the_one_its_template_says(parts):
    writer = Writer(parts, 0, words)
    template = Template("{a} lent {b} a {o}.", "{a} got the {o} back from", "b", "things")
    people = {"a": "Alice", "b": "Bob"}
    assert writer.head(template, people, "key").endswith(" Alice lent Bob a key.")
    assert writer.tail(template, people, "key").endswith(" Alice got the key back from")


@pytest.mark.parametrize("tokens", [40, 120, 500])
def test_texts_are_as_long_as_asked(parts, tokens):
    lengths = [words(t.text) for t in islice(Writer(parts, 1, words).texts(tokens), 200) if "capital" not in t.text]
    assert max(lengths) <= tokens
    assert sum(lengths) / len(lengths) > 0.85 * tokens


def test_stories_are_asked_for_at_many_distances(parts):
    texts = islice(Writer(parts, 2, words).texts(400), 300)
    gaps = [words(t.text[t.text.find(t.text[a:b]) : a]) for t in texts for a, b in t.answers if "capital" not in t.text]
    assert min(gaps) < 60 and max(gaps) > 350


def test_joining_keeps_the_answers_in_place():
    text = joined([("he went.", "", ""), ("then he thanked", " Bob", ".")])
    assert text.text == "He went. Then he thanked Bob."
    assert [text.text[a:b] for a, b in text.answers] == [" Bob"]
