"""The rules for cutting a text that transformers keeps in its tokenizer classes and not in a model's files.

A class of this kind (`models/<family>/tokenization_<family>.py`) takes the vocabulary, the merges and the template
from the files, and brings its own normalizer and pre-tokenizer. A folder with vocab.json and merges.txt has no other
rules. A tokenizer.json has its own, and they are what is followed here; where those of the class differ, the class
cuts some texts otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from tokentrail.errors import WeightsError
from tokentrail.weights import stated_tokens
from tokentrail.weights.stated_tokens import Stated, mapping

QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
OF_FAMILY = {"gpt2": "GPT2Tokenizer", "qwen2": "Qwen2Tokenizer", "qwen3": "Qwen2Tokenizer"}
"""The class of a model type for which the files name none; the other families read tokenizer.json as it is."""
OF_FILES = {"granitemoehybrid", "mistral"}
"""Model types that are read by their tokenizer.json whatever class the files name."""
BYTE_LEVEL = ("GPT2Tokenizer", "Qwen2Tokenizer")
"""Classes that a vocab.json and a merges.txt are enough for."""
DEFAULT_BOS = {"GPT2Tokenizer": "<|endoftext|>"}

Rules = tuple[normalizers.Normalizer | None, pre_tokenizers.PreTokenizer]


def class_of(config: Mapping[str, Any], settings: Mapping[str, Any]) -> str | None:
    """The class that transformers takes, None if it reads the files as they are. As `AutoTokenizer.from_pretrained`."""
    kind = config.get("model_type")
    stated = settings.get("tokenizer_class") or config.get("tokenizer_class")
    stated = stated.removesuffix("Fast") if isinstance(stated, str) else None
    if kind in OF_FILES:
        return None
    chosen = OF_FAMILY.get(kind) if stated is None or kind == "qwen2" else stated
    return chosen if chosen in (*BYTE_LEVEL, "LlamaTokenizer") else None


def rules(name: str, settings: Mapping[str, Any]) -> Rules:
    """The normalizer and the pre-tokenizer of a class, with the settings of tokenizer_config.json that it takes."""
    space = settings.get("add_prefix_space")
    match name:
        case "GPT2Tokenizer":
            return None, pre_tokenizers.ByteLevel(add_prefix_space=bool(space))
        case "Qwen2Tokenizer":
            split = pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated")
            byte_level = pre_tokenizers.ByteLevel(add_prefix_space=bool(space), use_regex=False)
            return normalizers.NFC(), pre_tokenizers.Sequence([split, byte_level])
    scheme = "never" if space is False else "always" if settings.get("legacy") else "first"
    return None, pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme=scheme, split=False)


def of_class(
    inner: tokenizers.Tokenizer, config: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[str, tokenizers.Tokenizer] | None:
    """The class that transformers takes and its tokenizer; None if it cuts every text as `inner` does."""
    name = class_of(config, settings)
    byte_level = "ByteLevel" in state(inner.pre_tokenizer)
    if name is None or not isinstance(inner.model, models.BPE) or (name == "LlamaTokenizer" and byte_level):
        return None
    own, theirs = (inner.normalizer, inner.pre_tokenizer), rules(name, settings)
    if not inner.model.ignore_merges and list(map(state, own)) == list(map(state, theirs)):
        return None
    made = tokenizers.Tokenizer.from_str(inner.to_str())
    made.normalizer, made.pre_tokenizer = theirs
    made.model.ignore_merges = False
    return name, made


def state(part: Any) -> str:
    """A normalizer or pre-tokenizer as its JSON, "" for none; without what it does to offsets, which cuts nothing."""
    return "" if part is None else part.__getstate__().decode().replace('"trim_offsets":true', '"trim_offsets":false')


def from_vocabulary(files: Mapping[str, Path], where: str) -> str:
    """The text of the tokenizer.json that vocab.json and merges.txt make, by the rules of the model's class.

    Raises WeightsError if the class is not known to be byte-level BPE, or if the files do not fit together.
    """
    config = mapping(files, "config.json")
    stated = stated_tokens.read(files, config)
    name = class_of(config, stated.settings)
    if name not in BYTE_LEVEL:
        raise WeightsError(
            f"{where} has vocab.json and merges.txt but no tokenizer.json, and neither its config.json nor its "
            f"tokenizer_config.json says by which rules a text is cut before it is merged (those of "
            f"{' and '.join(BYTE_LEVEL)} are known); put the tokenizer.json of the model that it was made from into a "
            f"copy of its files, and give the copy as a source of kind `folder`"
        )
    made = byte_level(files, where)
    made.normalizer, made.pre_tokenizer = rules(name, stated.settings)
    made.decoder = decoders.ByteLevel()
    stated.add(made)
    made.post_processor = template(made, stated, name)
    return made.to_str()


def byte_level(files: Mapping[str, Path], where: str) -> tokenizers.Tokenizer:
    """The vocabulary and the merges. Lines may end in CRLF, and the files may begin with a byte order mark."""
    lines = files["merges.txt"].read_text(encoding="utf-8-sig").split("\n")
    merges = [tuple(line.rstrip("\r").split(" ")) for line in lines if line.rstrip("\r")]
    vocabulary = mapping(files, "vocab.json")
    if not vocabulary:
        raise WeightsError(f"vocab.json of {where} lists no token; fetch it again")
    try:
        merges = [(left, right) for left, right in merges if left != "#version:"]
        return tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    except Exception as error:  # `tokenizers` raises nothing narrower
        raise WeightsError(
            f"merges.txt and vocab.json of {where} do not fit together ({error}); fetch both again"
        ) from None


def template(made: tokenizers.Tokenizer, stated: Stated, name: str) -> processors.TemplateProcessing:
    """BOS before and EOS after a text, as add_bos_token and add_eos_token of tokenizer_config.json say."""
    bos, eos = (stated.named.get(role, DEFAULT_BOS.get(name)) for role in ("bos_token", "eos_token"))
    before = [bos] if bos and stated.settings.get("add_bos_token") else []
    after = [eos] if eos and stated.settings.get("add_eos_token") else []
    special = [(content, made.token_to_id(content)) for content in dict.fromkeys(before + after)]
    if unknown := [content for content, token_id in special if token_id is None]:
        raise WeightsError(
            f"tokenizer_config.json asks for {unknown[0]!r} around each text, but vocab.json has no such token; "
            f"correct add_bos_token or bos_token (add_eos_token or eos_token)"
        )
    return processors.TemplateProcessing(single=[*before, "$A", *after], special_tokens=special)
