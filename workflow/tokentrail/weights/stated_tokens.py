"""What the files beside a vocabulary say of its tokens, read as transformers reads them.

The reference is `PreTrainedTokenizerBase._from_pretrained` and `TokenizersBackend.__init__`. One thing differs: a
token that is only named, and that no file gives an id, is not given a new one, because the model has never seen it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from tokentrail.errors import ConfigError, WeightsError

FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
BOS_NAMES = ("<|begin_of_text|>", "<s>", "<bos>", "<|bos|>", "<|im_start|>", "<|endoftext|>")
"""What a BOS token is called where no file says which it is, the likeliest first."""


@dataclass(frozen=True)
class Stated:
    """The named tokens, the added ones by id, and the settings of tokenizer_config.json."""

    named: Mapping[str, str] = field(default_factory=dict)
    """The content of each special token by its role, such as `bos_token`."""
    added: Mapping[int, AddedToken] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    bos_id: int | None = None
    """`bos_token_id` of config.json."""

    def bos(self, inner: tokenizers.Tokenizer, model: str) -> tuple[int | None, str]:
        """The id of the BOS token, None if there is none, and what says so.

        Raises ConfigError, naming it, if the token that is stated is none of the tokenizer's.
        """
        if content := self.named.get("bos_token"):
            if (token_id := inner.token_to_id(content)) is None:
                raise ConfigError(
                    f"the BOS token of {model} is {content!r}, as its tokenizer files state, but its tokenizer has no "
                    f"such token; set models.{model}.bos to never, or correct bos_token"
                )
            return token_id, "tokenizer files"
        if self.bos_id is not None:
            if inner.id_to_token(self.bos_id) is None:
                raise ConfigError(
                    f"the BOS token of {model} has the id {self.bos_id}, as bos_token_id in its config.json states, "
                    f"but its tokenizer has no such token; set models.{model}.bos to never, or correct bos_token_id"
                )
            return self.bos_id, "config.json"
        ids = (inner.token_to_id(name) for name in BOS_NAMES)
        return next((i for i in ids if i is not None), None), "its name"

    def without_id(self, inner: tokenizers.Tokenizer) -> list[str]:
        """Tokens that are named and that no file gives an id."""
        return [content for content in dict.fromkeys(self.named.values()) if inner.token_to_id(content) is None]

    def add(self, inner: tokenizers.Tokenizer) -> None:
        """Make them tokens of `inner`, which are looked for in a text before it is cut.

        Raises WeightsError if a token that is new to it does not get the id that the files state.
        """
        contents = set(self.named.values())
        for token_id, token in sorted(self.added.items()):
            token.special = token.special or token.content in contents
            new = inner.token_to_id(token.content) is None
            inner.add_tokens([token])
            if new and (found := inner.token_to_id(token.content)) != token_id:
                raise WeightsError(
                    f"the added token {token.content!r} has the id {token_id} in the tokenizer files, but "
                    f"{found} after the tokens before it; correct its id, or give the tokenizer as one tokenizer.json"
                )
        known = {token.content for token in inner.get_added_tokens_decoder().values()}
        for content in dict.fromkeys(self.named.values()):
            if content not in known and inner.token_to_id(content) is not None:
                inner.add_tokens([AddedToken(content, special=True)])
        inner.encode_special_tokens = bool(self.settings.get("split_special_tokens"))


def read(files: Mapping[str, Path], config: Mapping[str, Any]) -> Stated:
    """What the files of a model state. Raises WeightsError for one that is damaged."""
    settings = dict(mapping(files, "tokenizer_config.json"))
    if "added_tokens_decoder" in settings:
        added = {int(i): added_token(token) for i, token in settings["added_tokens_decoder"].items()}
    else:
        settings |= mapping(files, "special_tokens_map.json")
        special = set(named(settings).values())
        added = {
            i: AddedToken(content, normalized=content not in special, special=content in special)
            for content, i in mapping(files, "added_tokens.json").items()
        }
    bos_id = config.get("bos_token_id")
    return Stated(named(settings), added, settings, bos_id if isinstance(bos_id, int) else None)


def mapping(files: Mapping[str, Path], name: str) -> dict[str, Any]:
    """The JSON object in a file, empty without the file. Raises WeightsError if it holds anything else."""
    if name not in files:
        return {}
    try:
        found = json.loads(files[name].read_text(encoding="utf-8-sig"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise WeightsError(f"{name} of the model is not a JSON object; fetch it again or correct its source")
    return found


def named(settings: Mapping[str, Any]) -> dict[str, str]:
    """The tokens that have a role, and those that are only listed as special, under their own names."""
    roles = {key: content(value) for key, value in settings.items() if key.endswith("_token")}
    listed = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or ()
    extra: Iterable[Any] = listed.values() if isinstance(listed, dict) else listed
    return {key: said for key, said in roles.items() if said} | {
        said: said for each in extra if (said := content(each))
    }


def content(token: Any) -> str | None:
    """A token's text, stated as such or as the mapping that an AddedToken is saved as."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def added_token(token: dict[str, Any]) -> AddedToken:
    return AddedToken(**{key: value for key, value in token.items() if key not in ("__type", "id")})
