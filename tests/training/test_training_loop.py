"""The loop: parameters under their stored names, what is learned of a text, and a tiny training from end to end."""

from __future__ import annotations

import math

import pytest
import torch
from random_models import VARIANTS
from tokentrail.forward.families import read_spec
from tokentrail.forward.frame import forward
from tokentrail.training import checkpoint, settings
from tokentrail.training.fit import fit
from tokentrail.training.parameters import initial, model_of
from tokentrail.training.settings import Training
from tokentrail.training.text import Text
from tokentrail.training.train import DropMixers, asked, learning_rate, losses, optimizer
from tokentrail.training.vocabulary import END, encode

BOOK = Text("Alice gave Bob a book. Bob thanked Alice.", ((34, 40),))


def test_a_vocabulary_keeps_every_text_and_marks_the_answers(tokenizer):
    texts = [BOOK, Text("Bob thanked Mirabel.", ((11, 19),))]
    ids, answers = encode(tokenizer, texts, longest=100)
    for row, text in enumerate(texts):
        real = answers[row] >= 0
        assert tokenizer.decode(ids[row][real].tolist()) == text.text
        assert (ids[row][~real] == tokenizer.token_to_id(END)).all()
        answer = tokenizer.decode(ids[row][answers[row] == 1].tolist())
        assert answer == text.text[slice(*text.answers[0])]
    assert encode(tokenizer, texts, longest=5)[0].shape == (2, 5)


@pytest.mark.parametrize("variant", ["gpt2", "llama-biases", "qwen3", "granite-nope", "granite-biases"])
def test_what_is_trained_is_what_is_saved(variant, tokenizer, tmp_path):
    config = VARIANTS[variant] | {"vocab_size": tokenizer.get_vocab_size()}
    spec = read_spec(config)
    parameters = initial(spec, seed=1, embedding_std=0.1)
    ids = torch.tensor([tokenizer.encode(BOOK.text).ids])
    checkpoint.save(tmp_path, config, parameters, tokenizer)
    torch.testing.assert_close(
        forward(checkpoint.opened(tmp_path, "tiny").model, ids), forward(model_of(spec, parameters), ids)
    )


@pytest.mark.parametrize("variant", ["gpt2", "qwen3", "granite-nope"])
def test_every_stored_tensor_gets_a_gradient(variant, tokenizer):
    config = VARIANTS[variant] | {"vocab_size": tokenizer.get_vocab_size()}
    parameters = initial(read_spec(config), seed=1, embedding_std=0.1)
    ids = torch.tensor([tokenizer.encode(BOOK.text).ids])
    forward(model_of(read_spec(config), parameters), ids).square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in parameters.values())


def test_answers_are_always_among_what_is_learned():
    answers = torch.zeros(3, 41, dtype=torch.int8)
    answers[0, 30:33] = answers[1, 5] = 1
    answers[2, 20:] = -1
    read = asked(answers, torch.Generator().manual_seed(0))
    assert read.shape == (3, 3 + 10)
    assert {29, 30, 31} <= set(read[0].tolist()) and 4 in read[1].tolist()
    assert (answers[2].gather(0, read[2] + 1) >= 0).all()
    assert all(len(set(row)) == len(row) for row in read.tolist())


def test_losses_are_those_of_the_tokens_asked_for():
    logits, ids = torch.randn(2, 3, 7), torch.randint(0, 7, (2, 6))
    answers = torch.tensor([[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, -1, -1]], dtype=torch.int8)
    read = torch.tensor([[1, 3, 0], [2, 4, 0]])
    every, answer = losses(logits, ids, answers, read)
    nll = -logits.log_softmax(-1)
    by_hand = [
        nll[0, 0, ids[0, 2]],
        nll[0, 1, ids[0, 4]],
        nll[0, 2, ids[0, 1]],
        nll[1, 0, ids[1, 3]],
        nll[1, 2, ids[1, 1]],
    ]
    torch.testing.assert_close(every, torch.stack(by_hand).mean())
    torch.testing.assert_close(answer, torch.stack([by_hand[0], by_hand[3]]).mean())


def test_mixers_are_dropped_text_by_text():
    drop = DropMixers(0.3, torch.Generator().manual_seed(0))
    kept = drop("mixer_out", 0, torch.ones(2000, 4, 2))
    whole = kept.amin(dim=(1, 2))
    assert torch.equal(whole, kept.amax(dim=(1, 2)))
    assert 0.65 < whole.mean() < 0.75
    assert torch.equal(drop("ffn_out", 0, kept), kept)


def test_the_learning_rate_rises_then_falls():
    training = Training(learning_rate=1.0, warmup=10, phases=[{"steps": 100, "lengths": (8, 8), "batch_tokens": 8}])
    rates = [learning_rate(step, 100, training) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.06


def test_only_matrices_decay(tokenizer):
    spec = read_spec(VARIANTS["granite-nope"])
    parameters = initial(spec, 0, 0.1)
    adam = optimizer(parameters, Training(learning_rate=1, phases=[{"steps": 1, "lengths": (8, 8), "batch_tokens": 8}]))
    decayed = {id(p) for group in adam.param_groups if group["weight_decay"] for p in group["params"]}
    for name, parameter in parameters.items():
        is_matrix = name.endswith(("proj.weight", "linear.weight", "embed_tokens.weight", "lm_head.weight"))
        assert (id(parameter) in decayed) == is_matrix, name


def test_settings_name_their_mistakes(tmp_path):
    from tokentrail.errors import ConfigError

    with pytest.raises(ConfigError, match="no file of training settings"):
        settings.read(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("vocabulary: {pieces: 5}")
    with pytest.raises(ConfigError, match=r"vocabulary\.pieces is 5"):
        settings.read(tmp_path / "bad.yaml")
    reference = settings.read(settings.FILE)
    with pytest.raises(ConfigError, match="no reference model 'omega'"):
        settings.of_stage(reference, "card", "omega")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt2-mini", "qwen3-mini", "granite-h-mini"])
def test_a_tiny_training(model, parts, tmp_path):
    """The loss falls, the same seed gives the same losses, and transformers loads the result and agrees with us."""
    from tokentrail.measure.reference import open_reference, reference_logits

    chosen = settings.of_stage(settings.read(settings.FILE), "training", model)
    chosen["vocabulary"] |= {"pieces": 600, "texts": 300}
    chosen["training"] |= {"warmup": 10, "phases": [{"steps": 100, "lengths": [24, 40], "batch_tokens": 640}]}
    table = fit(chosen, parts, tmp_path)
    losses = table["loss"].to_list()
    assert losses[-1] < losses[0] - 0.5
    assert all(math.isfinite(loss) for loss in losses)

    loaded = checkpoint.opened(tmp_path, model)
    reference = open_reference(loaded.checkpoint)
    ids = torch.tensor([loaded.tokenizer.encode(BOOK.text)])
    with torch.inference_mode():
        assert (forward(loaded.model, ids) - reference_logits(reference, ids)).abs().max() < 1e-3
