"""A GGUF's vocabulary and merges as a tokenizer.json.

A GGUF names its pre-tokenizer (`tokenizer.ggml.pre`) and leaves the rule to the reader. The rules here:

- `smollm`: digits one by one, then GPT-2's expression. As `LLAMA_VOCAB_PRE_TYPE_SMOLLM` in llama.cpp
  (`src/llama-vocab.cpp`) and the tokenizer.json of SmolLM2. transformers' own converter leaves the digits
  out.
- `gpt-2`: GPT-2's expression, which `tokenizers` has built into ByteLevel.
- `llama-bpe` and its aliases, `qwen2`: the expressions in transformers'
  `integrations/gguf/gguf_tokenizer_mapping.py`, passed in as `splits`. Llama 3 also takes a word that is a
  token as it is, before any merge, and begins with BOS unless the file says otherwise; Qwen2 normalizes to
  NFC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokentrail.errors import WeightsError

LLAMA3 = ("llama-bpe", "llama-v3", "llama3")
SUPPORTED = ("gpt-2", *LLAMA3, "qwen2", "smollm")
CONTROL, USER_DEFINED = 3, 4  # `tokenizer.ggml.token_type`, as numbered by `gguf.TokenType`


def build(metadata: Mapping[str, Any], splits: Mapping[str, str], name: str) -> str:
    """The tokenizer as the text of a tokenizer.json, the same for the same metadata.

    Raises WeightsError if the kind of tokenizer or its pre-tokenizer is not supported, or if it is
    incomplete.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise WeightsError(
            f"{name} has tokenizer.ggml.model = {kind!r}, which is not supported; choose a GGUF with 'gpt2' "
            "(byte-level BPE), or safetensors with a tokenizer.json"
        )
    if pre not in SUPPORTED:
        raise WeightsError(
            f"{name} has tokenizer.ggml.pre = {pre!r}, which is not supported; choose a GGUF with one of "
            f"{', '.join(SUPPORTED)}, or safetensors with a tokenizer.json"
        )
    tokens = metadata.get("tokenizer.ggml.tokens") or []
    merges = [tuple(merge.split(" ")) for merge in metadata.get("tokenizer.ggml.merges") or []]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if not tokens or len(vocabulary) != len(tokens):
        raise WeightsError(f"{name} has no vocabulary, or lists a token twice; fetch the file again or choose another")
    try:
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre in LLAMA3))
    except Exception as error:  # `tokenizers` raises nothing narrower
        raise WeightsError(f"the merges in {name} do not fit its vocabulary ({error}); fetch the file again") from None
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _pre_tokenizer(pre, splits)
    tokenizer.decoder = decoders.ByteLevel()

    kinds = metadata.get("tokenizer.ggml.token_type") or []
    control = {index for index, kind in enumerate(kinds) if kind == CONTROL}
    named = ("bos", "eos", "padding")
    control |= {id for role in named if (id := metadata.get(f"tokenizer.ggml.{role}_token_id")) is not None}
    if control and max(control) >= len(tokens):
        raise WeightsError(f"{name} names a token id of {max(control)} among {len(tokens)} tokens; choose another GGUF")
    tokenizer.add_special_tokens([AddedToken(tokens[id], normalized=False, special=True) for id in sorted(control)])
    plain = [tokens[id] for id, kind in enumerate(kinds) if kind == USER_DEFINED and id not in control]
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in plain])
    if template := _template(metadata, tokens, name, bos=pre in LLAMA3):
        tokenizer.post_processor = template
    return tokenizer.to_str()


def _pre_tokenizer(pre: str, splits: Mapping[str, str]):
    from tokenizers import Regex, pre_tokenizers

    match pre:
        case "smollm":
            first = pre_tokenizers.Digits(individual_digits=True)
            return pre_tokenizers.Sequence([first, pre_tokenizers.ByteLevel(add_prefix_space=False)])
        case "gpt-2":
            return pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = pre_tokenizers.Split(Regex(splits[pre]), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _template(metadata: Mapping[str, Any], tokens: list[str], name: str, bos: bool):
    """BOS before and EOS after a text, as the file says; None for neither. `bos` holds where it says nothing of BOS."""
    from tokenizers import processors

    around: dict[str, list[tuple[str, int]]] = {}
    for role, unsaid in (("bos", bos), ("eos", False)):
        id = metadata.get(f"tokenizer.ggml.{role}_token_id")
        added = metadata.get(f"tokenizer.ggml.add_{role}_token", unsaid)
        if added and id is None:
            raise WeightsError(f"{name} asks for a {role.upper()} token and names none; choose another GGUF")
        around[role] = [(tokens[id], id)] if added else []
    before, after = ([token for token, _ in around[role]] for role in ("bos", "eos"))
    if not before + after:
        return None
    single = [*before, "$A", *after]
    return processors.TemplateProcessing(
        single=single,
        pair=[*single, *(f"{piece}:1" for piece in [*before, "$B", *after])],
        special_tokens=list(dict(around["bos"] + around["eos"]).items()),
    )
