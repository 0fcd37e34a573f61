"""Generated English: somebody gives, lends, shows or tells somebody something, and the text asks later who it was.

The parts come from a YAML file (`text.yaml`). What it holds out never stands in a training text:
names, pairs of a head and a tail, and paragraphs of filler. Everything is drawn from one seed.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FILE = Path(__file__).with_name("text.yaml")
MOST_STORIES = 10  # of one text
HELD_OUT_SHARE = 10  # one in so many made-up names is put aside


class Template(NamedTuple):
    """A head, a tail, and who of the two people the tail asks for."""

    head: str
    tail: str
    asks_for: str
    kind: str


@dataclass(frozen=True)
class Text:
    """A text, and the spans (start, end) of its characters that are answers, each with the space before it."""

    text: str
    answers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Parts:
    """What texts are put together from: either the half to learn from, or the half that is held out."""

    raw: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Parts:
        return cls(yaml.safe_load(Path(path).read_text(encoding="utf-8")))

    @cached_property
    def templates(self) -> list[Template]:
        """The templates to learn from: every head with every tail of its kind, but for the pairs held out."""
        held_out = set(self.held_out_templates)
        every = [
            Template(head, tail, asks_for, kind)
            for kind in ("things", "telling")
            for asks_for in ("a", "b")
            for head in self.raw["templates"][kind]["heads"]
            for tail in self.raw["templates"][kind][f"for_{asks_for}"]
        ]
        return [template for template in every if template not in held_out]

    @cached_property
    def held_out_templates(self) -> list[Template]:
        return [Template(head, tail, "a", "things") for head, tail in self.raw["templates"]["held_out"]]

    def made_up_name(self, rng: random.Random, held_out: bool) -> str:
        """A name that is not listed, from the half to learn from or from the one held out.

        Either put together from syllables, or the beginning of a name that is learned with the end of another: so
        the pieces that real names begin with stand at the beginning of many names.
        """
        while True:
            name = self.of_syllables(rng) if rng.random() < 0.4 else self.of_two_names(rng)
            if name not in self.listed and is_held_out(name) == held_out:
                return name

    def of_syllables(self, rng: random.Random) -> str:
        syllables = self.raw["names"]["syllables"]
        first, vowel, middle, last = (rng.choice(syllables[part]) for part in ("first", "vowel", "middle", "last"))
        return f"{first}{vowel}{middle if rng.random() < 0.4 else ''}{last}".capitalize()

    def of_two_names(self, rng: random.Random) -> str:
        one, other = rng.choice(self.learned), rng.choice(self.learned)
        return one[: rng.randint(2, len(one))] + other[rng.randint(1, len(other) - 1) :]

    @cached_property
    def learned(self) -> list[str]:
        return self.raw["names"]["common"] + self.raw["names"]["rare"]

    @cached_property
    def listed(self) -> set[str]:
        return {*self.learned, *self.raw["names"]["held_out"]}


def is_held_out(name: str) -> bool:
    """Whether a made-up name is kept out of the training text."""
    return zlib.crc32(name.encode()) % HELD_OUT_SHARE == 0


class Writer:
    """Writes texts of about a given number of tokens, as `count` counts them. One seed, one sequence.

    They are training texts, or with `held_out` texts of the names and the pairs of head and tail that no training text
    holds.
    """

    def __init__(self, parts: Parts, seed: int, count: Callable[[str], int], held_out: bool = False):
        self.parts = parts
        self.held_out = held_out
        self.templates = parts.held_out_templates if held_out else parts.templates
        self.rng = random.Random(seed)
        self.count = count
        self.raw = parts.raw

    def texts(self, tokens: int) -> Iterator[Text]:
        while True:
            yield self.text(tokens)

    def text(self, tokens: int) -> Text:
        """A text of at most about `tokens` tokens: facts, one story with its question, or several interleaved."""
        if self.rng.random() < 0.08:
            return self.facts(tokens)
        most = min(MOST_STORIES, tokens // 60)
        stories = 1 if most < 2 or self.rng.random() < 0.4 else self.rng.randint(2, most)
        return self.stories(stories, tokens)

    def facts(self, tokens: int) -> Text:
        """Facts in a random order, each once."""
        capitals = self.raw["facts"]["capitals"]
        sentence = self.raw["facts"]["sentence"]
        before, after = sentence.split("{capital}")
        countries = self.rng.sample(list(capitals), len(capitals))
        pieces: list[tuple[str, str, str]] = []
        for country in countries:
            piece = (before.format(country=country).rstrip(), f" {capitals[country]}", after)
            if pieces and sum(self.count("".join(p)) for p in [*pieces, piece]) > tokens:
                break
            pieces.append(piece)
        return joined(pieces)

    def stories(self, number: int, tokens: int) -> Text:
        """`number` heads, their tails in any order after them, and filler to fill the text up to `tokens`."""
        rng = self.rng
        cast = self.people(2 * number + 6)
        bystanders = cast[2 * number :]
        heads, tails = [], []
        for i in range(number):
            people = {"a": cast[2 * i], "b": cast[2 * i + 1]}
            template = rng.choice(self.templates)
            thing = rng.choice(self.raw["stories" if template.kind == "telling" else "objects"])
            heads.append((self.head(template, people, thing), "", ""))
            tails.append((self.tail(template, people, thing), f" {people[template.asks_for]}", "."))
        order = self.order(number)
        steps = [heads[i] if is_head else tails[i] for i, is_head in order]
        room = tokens - sum(self.count(f" {before}{answer}{after}") for before, answer, after in steps)
        return joined(self.spread(steps, self.filler(room, bystanders)))

    def order(self, number: int) -> list[tuple[int, bool]]:
        """(story, whether its head) in a random order in which every head comes before its tail."""
        steps = [i for i in range(number) for _ in range(2)]
        self.rng.shuffle(steps)
        seen: set[int] = set()
        order = []
        for i in steps:
            order.append((i, i not in seen))
            seen.add(i)
        return order

    def spread(self, steps: list[tuple], fillers: list[str]) -> list[tuple[str, str, str]]:
        """The filler sentences in the gaps between the steps, most of them before the last; seldom before the first."""
        rng = self.rng
        first = 0 if rng.random() < 0.75 else 1
        gaps = [[] for _ in steps]
        weights = [0.5 if i == 0 else rng.expovariate(1.0) for i in range(len(steps))]
        weights[0] = weights[0] * first
        at = sorted(rng.choices(range(len(steps)), weights=weights, k=len(fillers))) if sum(weights) else []
        for gap, filler in zip(at, fillers, strict=False):
            gaps[gap].append((filler, "", ""))
        return [piece for gap, step in zip(gaps, steps, strict=True) for piece in (*gap, step)]

    def head(self, template: Template, people: dict[str, str], thing: str) -> str:
        return f"{self.opening('head')} {template.head.format(**people, o=thing)}"

    def tail(self, template: Template, people: dict[str, str], thing: str) -> str:
        return f"{self.opening('tail')} {template.tail.format(**people, o=thing)}"

    def opening(self, kind: str) -> str:
        return self.rng.choice(self.raw["openings"][kind]).format(p=self.rng.choice(self.raw["places"]))

    def filler(self, tokens: int, people: list[str]) -> list[str]:
        """Sentences of at most `tokens` tokens: fresh ones or one paragraph again and again, with people or without."""
        rng = self.rng
        with_people = rng.random() < 0.4
        repeated = rng.random() < 0.5
        paragraph = [self.filler_sentence(people if with_people else []) for _ in range(rng.randint(3, 7))]
        sentences: list[str] = []
        used = 0
        while True:
            i = len(sentences)
            sentence = paragraph[i % len(paragraph)] if repeated else None
            sentence = sentence or self.filler_sentence(people if with_people else [])
            used += self.count(f" {sentence}")
            if used > tokens:
                return sentences
            sentences.append(sentence)

    def filler_sentence(self, people: list[str]) -> str:
        rng, fillers = self.rng, self.raw["fillers"]
        kind = "with_people" if people and rng.random() < 0.6 else "without_people"
        sentence = rng.choice(fillers[kind])
        for slot, words in fillers["slots"].items():
            sentence = fill(sentence, slot, lambda words=words: rng.choice(words))
        sentence = fill(sentence, "p", lambda: rng.choice(self.raw["places"]))
        if people:
            n, m = rng.sample(people, 2)
            sentence = sentence.replace("{n}", n).replace("{m}", m)
        return sentence

    def people(self, number: int) -> list[str]:
        """Different names: most of them common, some rare, some made up; or all of them held out."""
        names: list[str] = []
        while len(names) < number:
            name = self.name()
            if name not in names:
                names.append(name)
        return names

    def name(self) -> str:
        rng, names = self.rng, self.raw["names"]
        kind = rng.random()
        if self.held_out:
            return rng.choice(names["held_out"]) if kind < 0.5 else self.parts.made_up_name(rng, held_out=True)
        if kind < 0.42:
            return rng.choice(names["common"])
        if kind < 0.52:
            return rng.choice(names["rare"])
        return self.parts.made_up_name(rng, held_out=False)


def fill(sentence: str, slot: str, word: Callable[[], str]) -> str:
    """The sentence with a word of its own in each place of a slot."""
    while f"{{{slot}}}" in sentence:
        sentence = sentence.replace(f"{{{slot}}}", word(), 1)
    return sentence


def joined(pieces: list[tuple[str, str, str]]) -> Text:
    """Pieces (before, answer, after) joined by single spaces, with the spans of the answers."""
    text, answers = "", []
    for before, answer, after in pieces:
        text += (" " if text else "") + before[:1].upper() + before[1:]
        if answer:
            answers.append((len(text), len(text) + len(answer)))
        text += answer + after
    return Text(text, tuple(answers))
