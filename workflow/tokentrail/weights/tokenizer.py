"""Text to token ids and back, with every token's bytes accounted for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import tokenizers

from tokentrail.bytelevel import bytes_of, legible
from tokentrail.errors import ConfigError, PromptError, WeightsError
from tokentrail.forward.families import read_spec
from tokentrail.weights import stated_tokens
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.stated_tokens import Stated
from tokentrail.weights.tokenizer_classes import of_class, state

BYTE = re.compile("<0x([0-9A-F]{2})>")
SPACE = re.compile(
    r'"type":"Metaspace","replacement":"(?P<space>[^"]+)"'
    r'|"type":"Replace","pattern":\{"String":" "\},"content":"(?P<kept>[^"]+)"'
)
"""Where the JSON of a tokenizer's parts says what a space is written as."""


@dataclass(frozen=True)
class Piece:
    """One token of a prompt."""

    token_id: int
    token: str
    byte_start: int
    byte_end: int
    special: bool


@dataclass(frozen=True)
class Section:
    """Part of a text: one token that is looked for in it as it stands, or what lies between two of them."""

    text: str
    ids: list[int]
    added: bool
    offsets: list[tuple[int, int]]  # characters of the whole text that each token was made from


def open_tokenizer(checkpoint: Checkpoint, bos: str, model: str) -> Tokenizer:
    """The tokenizer of a checkpoint, with what its other files state.

    Raises WeightsError if there is no tokenizer.json or one of the files cannot be read, UnsupportedError for a
    config.json that no family reads, ConfigError for a BOS token that is asked for and is not there.
    """
    file = checkpoint.tokenizer_file
    if file is None:
        raise WeightsError(f"{model} has no tokenizer.json; add one to its source")
    stated = stated_tokens.read(checkpoint.files, checkpoint.config)
    try:
        inner = tokenizers.Tokenizer.from_str(file.read_text(encoding="utf-8-sig"))
    except Exception as error:  # `tokenizers` raises nothing narrower
        raise WeightsError(f"{file.name} of {model} is no tokenizer that can be read: {error}") from None
    stated.add(inner)
    rebuilt = of_class(inner, checkpoint.config, stated.settings)
    return Tokenizer(inner, bos, model, stated, rows=read_spec(checkpoint.config).vocabulary, rebuilt=rebuilt)


class Tokenizer:
    """A tokenizer and its policy for the begin-of-text token (BOS): `tokenizer`, `always` or `never`.

    `inner` is taken over and changed: what is a setting of a batch or of training (truncation, padding, merges
    dropped at random) is switched off, and its template is replaced by `prefix`. What the template puts after a text
    is left off, because something is to follow. `rows` is how many tokens the model's table has rows for, None if
    there is no model. `rebuilt` is what transformers makes of the same files where it cuts some texts otherwise (see
    `tokenizer_classes`).
    """

    CONTEXTS = ("", "\n", "|", "a")
    """What a word may follow; the first is the start of a text, where some tokenizers put a space."""

    def __init__(
        self,
        inner: tokenizers.Tokenizer,
        bos: str,
        model: str,
        stated: Stated | None = None,
        rows: int | None = None,
        rebuilt: tuple[str, tokenizers.Tokenizer] | None = None,
    ):
        self.inner, self.model, self.rows, self.rebuilt = inner, model, rows, rebuilt
        self.stated = stated or Stated()
        inner.no_truncation()
        inner.no_padding()
        if getattr(inner.model, "dropout", None):
            inner.model.dropout = None
        before, self.suffix = around(inner)
        inner.post_processor = None
        self._added = {i: token.content for i, token in inner.get_added_tokens_decoder().items()}

        said_by, self.prefix = "", before if bos != "never" else []
        if bos == "always" and not before:
            known, said_by = self.stated.bos(inner, model)
            if known is None:
                raise ConfigError(
                    f"models.{model}.bos is 'always', but its tokenizer has no BOS token; set it to never"
                )
            self.prefix = [known]
        self.bos_policy = self._policy(bos, before, said_by)

    def _policy(self, bos: str, before: list[int], said_by: str) -> str:
        """What is done about BOS, in words."""
        if self.prefix:
            policy = "added" if said_by != "its name" else "added, guessed from its name"
        elif before:
            policy = "left off, as bos: never asks"
        else:
            policy = "tokenizer has none" if self.bos_id is None else "tokenizer does not add it"
        after = " ".join(map(self.token, self.suffix))
        return f"{policy}; {after} after the text is left off" if after else policy

    @cached_property
    def bos_id(self) -> int | None:
        """The id of the BOS token, whether it is added or not."""
        if self.prefix:
            return self.prefix[-1]
        try:
            return self.stated.bos(self.inner, self.model)[0]
        except ConfigError:
            return None

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt, BOS included as the policy says.

        Raises PromptError for an empty prompt, or for a token that the model's table has no row for.
        """
        if not text:
            raise PromptError(f"a prompt for {self.model} is empty; give it a text")
        return self._with_rows(text, self.prefix + self._bare(text))

    def _bare(self, text: str) -> list[int]:
        utf8(text)
        return self.inner.encode(text, add_special_tokens=False).ids

    def _with_rows(self, text: str, ids: list[int]) -> list[int]:
        """The ids. Raises PromptError for one without a row."""
        without = [i for i in ids if self.rows is not None and i >= self.rows]
        if without:
            raise PromptError(
                f"{text[:40]!r} is cut into {self.token(without[0])!r} (id {without[0]}) among others, but the token "
                f"table of {self.model} has {self.rows} rows, and none for it; write the text without it, or give a "
                f"checkpoint whose table was enlarged to its tokenizer"
            )
        return ids

    def following(self, text: str, word: str) -> list[int]:
        """The ids that `word` is cut into when it follows `text`.

        Raises PromptError if the word adds no token of its own, changes how the text before it is cut, or has a token
        without a row.
        """
        ids = self._after(text, word)
        if not ids:
            raise PromptError(
                f"the target {word!r} is no token of its own after {text[-40:]!r} for {self.model}; "
                f"{self._remedy(text, word)}"
            )
        return self._with_rows(word, ids)

    def _after(self, text: str, word: str) -> list[int]:
        """As `following`; empty if the word has no tokens of its own."""
        before, both = self._bare(text), self._bare(text + word)
        return both[len(before) :] if both[: len(before)] == before else []

    def _remedy(self, text: str, word: str) -> str:
        shorter, spaced = text.rstrip(" "), f" {word.lstrip(' ')}"
        if word and shorter and shorter != text and self._after(shorter, spaced):
            return f"move the space from the end of the text to the target: {shorter[-40:]!r} and {spaced!r}"
        if word and not word.startswith(" ") and self._after(text, spaced):
            return f"a target that starts a new word needs a leading space: {spaced!r}"
        return "choose another target, or end the text elsewhere"

    def word(self, word: str) -> list[int]:
        """The ids that spell a word inside a text, with its own leading space or without one.

        Raises PromptError if no tokens spell it, or if one of them has no row.
        """
        for context in self.CONTEXTS:
            ids = self._after(context, word)
            if ids and b"".join(self.token_bytes(i) or b"" for i in ids) == utf8(word):
                return self._with_rows(word, ids)
        raise PromptError(
            f"the word {word!r} is no token of its own for {self.model}, nor several that spell it; leave it out, or "
            f"write it in the form that the tokenizer keeps"
        )

    @cached_property
    def without_id(self) -> list[str]:
        """Tokens that the files name and give no id."""
        return self.stated.without_id(self.inner)

    def special_in(self, text: str) -> list[str]:
        """The special tokens that stand in a text, each once."""
        special = {i for i, token in self.inner.get_added_tokens_decoder().items() if token.special}
        found = (self.token(section.ids[0]) for section in self.sections(text) if special.intersection(section.ids))
        return list(dict.fromkeys(found))

    @cached_property
    def vocabulary(self) -> int:
        return self.inner.get_vocab_size(with_added_tokens=True)

    @cached_property
    def ids(self) -> frozenset[int]:
        """The ids that are tokens; a model's table may have more rows."""
        return frozenset(self.inner.get_vocab(with_added_tokens=True).values())

    @cached_property
    def _byte_level(self) -> bool:
        return any("ByteLevel" in state(part) for part in (self.inner.pre_tokenizer, self.inner.decoder))

    @cached_property
    def _space(self) -> str:
        """The character that stands for a space in a SentencePiece vocabulary, "" in another."""
        parts = (self.inner.normalizer, self.inner.pre_tokenizer, self.inner.decoder)
        found = SPACE.search("".join(map(state, parts)))
        return json.loads(f'"{found["space"] or found["kept"]}"') if found else ""

    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes that a token stands for, None if the tokenizer has no such token.

        An added token stands for itself, whatever letters it is made of; one of the vocabulary for the bytes or the
        spaces that its letters stand for there.
        """
        byte = BYTE.fullmatch(self.inner.id_to_token(token_id) or "")
        if token_id in self._added and not (byte and self._falls_back):
            return self._added[token_id].encode()
        return self._vocabulary_bytes(token_id)

    def _vocabulary_bytes(self, token_id: int) -> bytes | None:
        name = self.inner.id_to_token(token_id)
        if name is None:
            return None
        if self._byte_level and (raw := bytes_of(name)) is not None:
            return raw
        if self._falls_back and (byte := BYTE.fullmatch(name)):
            return bytes([int(byte[1], 16)])
        return (name.replace(self._space, " ") if self._space else name).encode()

    @cached_property
    def _falls_back(self) -> bool:
        """Whether a character without a token is written as its bytes, each a token <0xNN>."""
        return bool(getattr(self.inner.model, "byte_fallback", False)) or "ByteFallback" in state(self.inner.decoder)

    def token(self, token_id: int) -> str:
        """A token's text; bytes that are no whole character as <0xNN>, an id without a token as <id N>."""
        raw = self.token_bytes(token_id)
        return f"<id {token_id}>" if raw is None else legible(raw)

    def sections(self, text: str) -> list[Section]:
        """The text in order, cut at its added tokens; joined, their texts are the text and their ids its ids."""
        utf8(text)
        encoding = self.inner.encode(text, add_special_tokens=False)
        found: list[Section] = []
        ids, offsets, start = [], [], 0
        for i, (begin, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if i in self._added and text[begin:end].strip() == self._added[i].strip():
                found += [Section(text[start:begin], ids, False, offsets)] if ids or begin > start else []
                found.append(Section(text[begin:end], [i], True, [(begin, end)]))
                ids, offsets, start = [], [], end
            else:
                ids.append(i)
                offsets.append((begin, end))
        return found + ([Section(text[start:], ids, False, offsets)] if ids or start < len(text) else [])

    def pieces(self, text: str) -> list[Piece]:
        """The prompt's tokens with the bytes that each covers; joined they are the prompt, byte for byte.

        Raises PromptError where a tokenizer rewrites the text (for example by Unicode normalisation) or has no token
        for a part of it, because then no token covers what the prompt says.
        """
        found, at = [Piece(i, self.token(i), 0, 0, True) for i in self.prefix], 0
        for section in self.sections(text):
            for token_id, raw in zip(section.ids, self._raws(text, section), strict=True):
                found.append(Piece(token_id, legible(raw), at, at + len(raw), False))
                at += len(raw)
        return found

    def _raws(self, text: str, section: Section) -> list[bytes]:
        """The bytes of each token of a section; a space that SentencePiece puts before a section is left out."""
        if section.added:
            return [section.text.encode()]
        raws = [self._vocabulary_bytes(i) or b"" for i in section.ids]
        whole = b"".join(raws)
        if whole == b" " + section.text.encode():
            return [raws[0][1:], *raws[1:]]
        if whole == section.text.encode():
            return raws
        unknown = self.inner.token_to_id(getattr(self.inner.model, "unk_token", None) or "")
        for i, (begin, end) in zip(section.ids, section.offsets, strict=True):
            if i == unknown:
                raise PromptError(
                    f"the tokenizer of {self.model} has no token for {text[begin:end]!r} in the prompt {text[:40]!r}; "
                    f"write the prompt without it"
                )
        kept = whole.decode(errors="replace")
        kept = kept if section.text.startswith(" ") else kept.removeprefix(" ")
        raise PromptError(
            f"the tokenizer of {self.model} rewrites the prompt {text[:40]!r} before it cuts it; "
            f"write {section.text[:40]!r} in the form that it keeps: {kept[:40]!r}"
        )


def around(inner: tokenizers.Tokenizer) -> tuple[list[int], list[int]]:
    """The ids that a tokenizer's template puts before and after a text."""
    made = inner.encode("a", add_special_tokens=True)
    marked = list(zip(made.ids, made.special_tokens_mask, strict=True))
    before = [i for i, _ in takewhile(lambda each: each[1], marked)]
    after = [i for i, _ in takewhile(lambda each: each[1], reversed(marked[len(before) :]))]
    return before, after[::-1]


def utf8(text: str) -> bytes:
    """The bytes of a text. Raises ConfigError for half of a surrogate pair, which has none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"the text {text[:40]!r} holds half of a surrogate pair, which is no character; write the whole character"
        ) from None
