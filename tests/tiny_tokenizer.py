"""A byte-level BPE tokenizer trained on a few lines, for tests of everything that reads text."""

from __future__ import annotations

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

TEXT = [
    "In the morning, Alice gave Bob a book. Later, Bob gave the book back to Alice",
    "The capital of France is Paris. The capital of Japan is Tokyo.",
    "Carol gave Tom a key. Mirabel and Carol met Tom.",
] * 3


def train(vocabulary: int = 400, bos: bool = False) -> tokenizers.Tokenizer:
    """With `bos`, a post-processor adds <s> before a text, as Llama's does."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<s>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer
