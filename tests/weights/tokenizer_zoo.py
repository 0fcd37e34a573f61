"""Folders of tokenizer files as people have them, for comparison with what transformers makes of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiny_tokenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LOW_LINE = "<｜end▁of▁sentence｜>"
PROMPTS = [
    "In the morning, Alice gave Bob a book. Later, Bob gave the book back to",
    " Alice gave",
    "Alice gave ",
    "Alice  gave\tBob\r\na book",
    f"Alice gave.{LOW_LINE}Bob gave",
    "<s>Alice gave <|user|>Bob</s> back",
    "Alice<mask> gave  <mask>  Bob",
    "1998 books, 12 keys",
    "The capital of France",
    "caf\u00e9 cafe\u0301 \u5b89",
    "\ufeffAlice",
    "Alice\u2581gave",
]

Write = Callable[[Path], None]


def byte_level(
    special: tuple[Any, ...] = (LOW_LINE, "<|user|>", "</s>"), before: str = "", after: str = ""
) -> Tokenizer:
    made = tiny_tokenizer.train()
    made.add_special_tokens(list(special))
    return templated(made, before, after)


def templated(made: Tokenizer, before: str, after: str) -> Tokenizer:
    around = [(token, made.token_to_id(token)) for token in (before, after) if token]
    if around:
        made.post_processor = processors.TemplateProcessing(
            single=f"{before} $A {after}".strip(), special_tokens=around
        )
    return made


def sentencepiece(old: bool, special: tuple[Any, ...] = (LOW_LINE, "<|user|>")) -> Tokenizer:
    """As Llama 2's tokenizer.json: with a normalizer in older files, with Metaspace in newer ones."""
    trained = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    control = ["<unk>", "<s>", "</s>"]
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=control + fallback, show_progress=False)
    trained.train_from_iterator(tiny_tokenizer.TEXT, trainer)
    plain = json.loads(trained.to_str())
    plain["added_tokens"] = [token for token in plain["added_tokens"] if token["content"] in control]
    made = Tokenizer.from_str(json.dumps(plain | {"pre_tokenizer": None}))
    if old:
        made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    parts = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(parts)
    made.add_special_tokens(list(special))
    return templated(made, "<s>", "")


def saved(made: Tokenizer, **files: Any) -> Write:
    """tokenizer.json with other files; `__` in their names stands for a dot."""

    def write(folder: Path) -> None:
        made.save(str(folder / "tokenizer.json"))
        others(folder, files)

    return write


def in_two_files(line_end: str = "\n", mark: str = "", **files: Any) -> Write:
    """vocab.json and merges.txt."""

    def write(folder: Path) -> None:
        tiny_tokenizer.train().model.save(str(folder))
        merges = (folder / "merges.txt").read_text(encoding="utf-8")
        (folder / "merges.txt").write_bytes((mark + merges.replace("\n", line_end)).encode())
        others(folder, files)

    return write


def others(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def batched(made: Tokenizer) -> Tokenizer:
    made.enable_truncation(4)
    made.enable_padding(length=16)
    return made


def prefixed(made: Tokenizer) -> Tokenizer:
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return made


def entry(content: str, **flags: bool) -> dict[str, Any]:
    return dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False) | {"content": content} | flags


FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
SPECIAL = {str(400 - 57 + i): entry(token, special=True) for i, token in enumerate((LOW_LINE, "<|user|>"))}

ZOO: dict[str, tuple[str, Write]] = {
    "byte-level": ("llama", saved(byte_level())),
    "bos": ("llama", saved(byte_level(before="<s>"))),
    "bos and eos": ("llama", saved(byte_level(before="<s>", after="</s>"))),
    "eos alone": ("llama", saved(byte_level(after="</s>"))),
    "bos asked for beside tokenizer.json": (
        "llama",
        saved(byte_level(), tokenizer_config=FAST | {"bos_token": "<s>", "add_bos_token": True}),
    ),
    "bos as a mapping": (
        "llama",
        saved(byte_level(), tokenizer_config=FAST | {"bos_token": entry("<s>", __type="AddedToken")}),
    ),
    "stripping": (
        "llama",
        saved(byte_level((AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False), "<|user|>"))),
    ),
    "added in tokenizer_config": (
        "llama",
        saved(tiny_tokenizer.train(), tokenizer_config=FAST | {"added_tokens_decoder": SPECIAL}),
    ),
    "added in added_tokens": (
        "llama",
        saved(
            tiny_tokenizer.train(),
            added_tokens={LOW_LINE: 343, "<|user|>": 344},
            special_tokens_map={"additional_special_tokens": [LOW_LINE], "bos_token": entry("<s>")},
        ),
    ),
    "special by role alone": ("llama", saved(byte_level(()), tokenizer_config=FAST | {"eos_token": "ital"})),
    "special tokens split": (
        "llama",
        saved(byte_level(), tokenizer_config=FAST | {"split_special_tokens": True}),
    ),
    "truncation and padding": ("llama", saved(batched(byte_level()))),
    "prefix space": ("llama", saved(prefixed(byte_level()))),
    "Metaspace in the normalizer": ("llama", saved(sentencepiece(old=True))),
    "Metaspace": ("llama", saved(sentencepiece(old=False))),
    "Metaspace by its class": (
        "llama",
        saved(sentencepiece(old=False), tokenizer_config={"tokenizer_class": "LlamaTokenizer"}),
    ),
    "granite": ("granitemoehybrid", saved(byte_level(), tokenizer_config={"tokenizer_class": "GPT2Tokenizer"})),
    "vocab and merges": ("gpt2", in_two_files()),
    "vocab and merges of qwen": ("qwen3", in_two_files()),
    "vocab and merges with bos": (
        "gpt2",
        in_two_files(tokenizer_config={"add_bos_token": True, "bos_token": "<s>", "add_prefix_space": True}),
    ),
    "vocab and merges with added tokens": (
        "gpt2",
        in_two_files(
            added_tokens={LOW_LINE: 343, "<|user|>": 344},
            special_tokens_map={"bos_token": "<s>", "additional_special_tokens": ["<|user|>"]},
        ),
    ),
}

IN_CLASS: dict[str, tuple[str, Write]] = {
    "tokenizer.json with a prefix space for gpt2": ("gpt2", saved(prefixed(byte_level()))),
    "tokenizer.json without a pattern for qwen3": ("qwen3", saved(byte_level())),
    "the older Metaspace by its class": (
        "llama",
        saved(sentencepiece(old=True), tokenizer_config={"tokenizer_class": "LlamaTokenizerFast"}),
    ),
}
"""Where transformers follows its class and not tokenizer.json: the file is followed here, and that is said."""
