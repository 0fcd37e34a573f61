"""Text to token ids and back, with every token's bytes accounted for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tokenizers

from tokentrail.bytelevel import bytes_of, legible
from tokentrail.errors import ConfigError, PromptError, WeightsError


@dataclass(frozen=True)
class Piece:
    """One token of a prompt."""

    token_id: int
    token: str
    byte_start: int
    byte_end: int
    special: bool


def open_tokenizer(file: Path | None, bos: str, model: str) -> Tokenizer:
    """The tokenizer in a tokenizer.json. Raises WeightsError if there is none or it cannot be read."""
    if file is None:
        raise WeightsError(f"{model} has no tokenizer.json; add one to its source")
    try:
        return Tokenizer(tokenizers.Tokenizer.from_file(str(file)), bos, model)
    except ConfigError:
        raise
    except Exception as error:
        raise WeightsError(f"{file.name} of {model} is no tokenizer that can be read: {error}") from None


class Tokenizer:
    """A tokenizer and its policy for the begin-of-text token (BOS): `tokenizer`, `always` or `never`."""

    BOS_NAMES = ("<|begin_of_text|>", "<s>", "<bos>", "<|bos|>", "<|im_start|>", "<|endoftext|>")

    def __init__(self, inner: tokenizers.Tokenizer, bos: str, model: str):
        self.inner = inner
        self.model = model
        own = inner.encode("a", add_special_tokens=True).ids
        bare = inner.encode("a", add_special_tokens=False).ids
        added = own[: len(own) - len(bare)] if own[-len(bare) :] == bare else []
        match bos:
            case "never":
                self.prefix: list[int] = []
            case "tokenizer":
                self.prefix = added
            case "always":
                self.prefix = added or [self._bos_id()]
        without = "tokenizer has none" if self._known_bos() is None else "tokenizer does not add it"
        self.bos_policy = "added" if self.prefix else without

    def _known_bos(self) -> int | None:
        ids = (self.inner.token_to_id(name) for name in self.BOS_NAMES)
        return next((i for i in ids if i is not None), None)

    def _bos_id(self) -> int:
        known = self._known_bos()
        if known is None:
            raise ConfigError(
                f"models.{self.model}.bos is 'always', but its tokenizer has no BOS token; set it to never"
            )
        return known

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt, BOS included as the policy says. Raises PromptError for an empty prompt."""
        if not text:
            raise PromptError(f"a prompt for {self.model} is empty; give it a text")
        return self.prefix + self._bare(text)

    def _bare(self, text: str) -> list[int]:
        utf8(text)
        return self.inner.encode(text, add_special_tokens=False).ids

    def following(self, text: str, word: str) -> list[int]:
        """The ids that `word` is cut into when it follows `text`.

        Raises PromptError if the word adds no token of its own, or changes how the text before it is cut.
        """
        before, both = self._bare(text), self._bare(text + word)
        if both[: len(before)] != before or len(both) == len(before):
            raise PromptError(
                f"the target {word!r} is no token of its own after {text[-40:]!r} for {self.model}; "
                f"a target that starts a new word needs a leading space"
            )
        return both[len(before) :]

    @cached_property
    def vocabulary(self) -> int:
        return self.inner.get_vocab_size(with_added_tokens=True)

    @cached_property
    def ids(self) -> frozenset[int]:
        """The ids that are tokens; a model's table may have more rows."""
        return frozenset(self.inner.get_vocab(with_added_tokens=True).values())

    @cached_property
    def _byte_level(self) -> bool:
        return '"ByteLevel"' in self.inner.to_str()

    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes that a token stands for, None if the tokenizer has no such token."""
        name = self.inner.id_to_token(token_id)
        if name is None:
            return None
        if self._byte_level and (raw := bytes_of(name)) is not None:
            return raw
        if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
            return bytes([int(name[3:5], 16)])
        return name.replace("\u2581", " ").encode()

    def token(self, token_id: int) -> str:
        """A token's text; bytes that are no whole character as <0xNN>, an id without a token as <id N>."""
        raw = self.token_bytes(token_id)
        return f"<id {token_id}>" if raw is None else legible(raw)

    def pieces(self, text: str) -> list[Piece]:
        """The prompt's tokens with the bytes that each covers; joined they are the prompt, byte for byte.

        Raises PromptError where a tokenizer rewrites the text (for example by Unicode normalisation), because
        then no token covers what the prompt says.
        """
        special = [Piece(i, self.token(i), 0, 0, True) for i in self.prefix]
        found, at = [], 0
        raws = [(i, self.token_bytes(i) or b"") for i in self._bare(text)]
        whole = b"".join(raw for _, raw in raws)
        if whole == b" " + text.encode():  # SentencePiece puts a space before a text
            raws[0] = (raws[0][0], raws[0][1][1:])
        elif whole != text.encode():
            raise PromptError(
                f"the tokenizer of {self.model} rewrites the prompt {text[:40]!r} before it cuts it; "
                f"write it in the form that it keeps: {whole.decode(errors='replace')[:40]!r}"
            )
        for token_id, raw in raws:
            found.append(Piece(token_id, legible(raw), at, at + len(raw), False))
            at += len(raw)
        return special + found


def utf8(text: str) -> bytes:
    """The bytes of a text. Raises ConfigError for half of a surrogate pair, which has none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"the text {text[:40]!r} holds half of a surrogate pair, which is no character; write the whole character"
        ) from None
