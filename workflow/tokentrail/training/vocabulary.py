"""A byte-level BPE made from generated text, and texts as token ids."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from tokentrail.training.text import Text

END = "<|endoftext|>"


def learn(texts: Iterable[str], size: int) -> Tokenizer:
    """A byte-level BPE (Sennrich et al. 2016; Radford et al. 2019) of `size` pieces, the end of text included."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[Text], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """ids (texts, tokens), filled up with the end of text and cut at `longest`; and the same shape for answers.

    The second is 1 where a token belongs to an answer, 0 elsewhere in a text, and -1 where there is no text.
    """
    encodings = tokenizer.encode_batch([t.text for t in texts], add_special_tokens=False)
    tokens = min(longest, max(len(e.ids) for e in encodings))
    ids = np.full((len(texts), tokens), tokenizer.token_to_id(END), dtype=np.int64)
    answers = np.full((len(texts), tokens), -1, dtype=np.int8)
    for row, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
        cut = encoding.ids[:tokens]
        ids[row, : len(cut)] = cut
        answers[row, : len(cut)] = 0
        for start, end in text.answers:
            for i, (a, b) in enumerate(encoding.offsets[:tokens]):
                if a < end and b > start:
                    answers[row, i] = 1
    return ids, answers
