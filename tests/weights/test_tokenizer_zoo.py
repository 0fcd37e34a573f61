"""What a model's files say about text is read as the pinned transformers reads it; what differs on purpose is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import random_models
import tokenizer_zoo as zoo
import transformers
from tokentrail.errors import ConfigError, PromptError
from tokentrail.measure.notes import notes
from tokentrail.weights import tokenizer_classes
from tokentrail.weights.checkpoint import Checkpoint
from tokentrail.weights.tokenizer import Tokenizer, open_tokenizer

VARIANT_OF = {"llama": "llama", "gpt2": "gpt2", "qwen3": "qwen3", "granitemoehybrid": "granite-nope"}


def folder_of(folder: Path, kind: str, write: zoo.Write, **config) -> Path:
    stated = {key: value for key, value in random_models.VARIANTS[VARIANT_OF[kind]].items() if key != "bos_token_id"}
    (folder / "config.json").write_text(json.dumps(stated | {"vocab_size": 1000} | config))
    write(folder)
    return folder


def opened(folder: Path, bos: str = "tokenizer") -> Tokenizer:
    """As `weights` and `open_checkpoint` leave the files."""
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    if "tokenizer.json" not in files:
        derived = folder / "derived" / "tokenizer.json"
        derived.parent.mkdir(exist_ok=True)
        derived.write_text(tokenizer_classes.from_vocabulary(files, "tiny"))
        files["tokenizer.json"] = derived
    config = json.loads(files["config.json"].read_text())
    return open_tokenizer(Checkpoint(config, (), files["tokenizer.json"], "0" * 64, files), bos, "tiny")


@pytest.fixture(scope="module", params=zoo.ZOO)
def both(request, tmp_path_factory):
    folder = folder_of(tmp_path_factory.mktemp("zoo"), *zoo.ZOO[request.param])
    return opened(folder), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("text", zoo.PROMPTS, ids=ascii)
def test_the_ids_are_those_of_transformers(both, text):
    ours, theirs = both
    assert ours.encode(text) + ours.suffix == theirs.encode(text)
    assert not [note for note in notes(ours, 4096, text, "x") if "transformers" in note]


@pytest.mark.parametrize("text", zoo.PROMPTS, ids=ascii)
def test_every_byte_of_a_prompt_is_in_one_piece(both, text):
    ours, _ = both
    raw = text.encode()
    try:
        pieces = ours.pieces(text)
    except PromptError as error:
        rewritten = "\u0301" if ours._byte_level else "\u2581"  # Qwen's NFC; what stands for a space in SentencePiece
        assert "rewrites the prompt" in str(error) and rewritten in text, error
        return
    assert [piece.token_id for piece in pieces] == ours.encode(text)
    assert b"".join(raw[piece.byte_start : piece.byte_end] for piece in pieces) == raw
    assert [piece.byte_end for piece in pieces[:-1]] == [piece.byte_start for piece in pieces[1:]]


@pytest.mark.parametrize("word", ["France", " France", "Alice", " Alice", "Mirabel", "8", " 8"])
def test_a_word_is_spelt_with_its_own_space_or_without(both, word):
    ours, _ = both
    ids = ours.word(word)
    assert b"".join(map(ours.token_bytes, ids)) == word.encode()
    assert ids == ours.following("gave\n", word)


@pytest.mark.parametrize("name", zoo.IN_CLASS)
def test_where_transformers_follows_its_class_the_file_is_followed_and_that_is_said(name, tmp_path):
    folder = folder_of(tmp_path, *zoo.IN_CLASS[name])
    ours, theirs = opened(folder), transformers.AutoTokenizer.from_pretrained(folder)
    differ = {text for text in zoo.PROMPTS if ours.encode(text) != theirs.encode(text)}
    said = {text for text in zoo.PROMPTS if any("cuts it otherwise" in note for note in notes(ours, 4096, text, "x"))}
    assert differ and said == differ


def test_a_named_token_without_an_id_stays_text_and_that_is_said(tmp_path):
    write = zoo.saved(zoo.byte_level(), tokenizer_config=zoo.FAST | {"pad_token": "[PAD]"})
    folder = folder_of(tmp_path, "llama", write)
    ours, theirs = opened(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert theirs.encode("[PAD]") == [ours.vocabulary]  # an id that the vocabulary does not have
    assert ours.token(ours.encode("[PAD]")[0]) == "["
    (note,) = notes(ours, 4096, "a [PAD]", "x")
    assert "'[PAD]', which the tokenizer files name as a token and give no id" in note


def test_merges_are_not_dropped_at_random(tmp_path):
    made = zoo.byte_level()
    made.model.dropout = 0.9
    ours = opened(folder_of(tmp_path, "llama", zoo.saved(made)))
    made.model.dropout = None
    assert ours.encode(zoo.PROMPTS[0]) == made.encode(zoo.PROMPTS[0]).ids


@pytest.mark.parametrize(("line_end", "mark"), [("\r\n", ""), ("\n", "\ufeff"), ("\r\n", "\ufeff")])
def test_line_ends_and_a_byte_order_mark_change_no_merge(tmp_path, line_end, mark):
    plain, marked = ((tmp_path / name) for name in ("plain", "marked"))
    for folder, write in ((plain, zoo.in_two_files()), (marked, zoo.in_two_files(line_end, mark))):
        folder.mkdir()
        folder_of(folder, "gpt2", write)
    assert opened(plain).inner.to_str() == opened(marked).inner.to_str()


SAID = {
    "tokenizer_config.json": ({"tokenizer_config": {"bos_token": "</s>"}}, {"bos_token_id": 0}, "</s>", "added"),
    "as a mapping": ({"tokenizer_config": {"bos_token": zoo.entry("</s>")}}, {}, "</s>", "added"),
    "special_tokens_map.json": ({"special_tokens_map": {"bos_token": "</s>"}}, {"bos_token_id": 0}, "</s>", "added"),
    "config.json": ({"tokenizer_config": {"bos_token": None}}, {"bos_token_id": 344}, "<|user|>", "added"),
    "nothing": ({}, {}, "<s>", "added, guessed from its name"),
}


@pytest.mark.parametrize("case", SAID)
def test_always_takes_the_bos_that_is_stated_before_any_guess(tmp_path, case):
    files, config, token, policy = SAID[case]
    folder = folder_of(tmp_path, "llama", zoo.saved(zoo.byte_level(), **files), **config)
    made = opened(folder, "always")
    assert [made.token(i) for i in made.encode("Alice")[:1]] == [token]
    assert made.bos_policy == policy
    assert opened(folder).bos_policy == "tokenizer does not add it"


@pytest.mark.parametrize(
    ("files", "config", "said"),
    [
        (
            {"tokenizer_config": {"bos_token": "<bos>"}},
            {},
            "the BOS token of tiny is '<bos>'.*models.tiny.bos to never",
        ),
        ({}, {"bos_token_id": 999}, "the BOS token of tiny has the id 999.*models.tiny.bos to never"),
    ],
)
def test_a_stated_bos_that_is_no_token_is_refused_by_name(tmp_path, files, config, said):
    folder = folder_of(tmp_path, "llama", zoo.saved(zoo.byte_level(), **files), **config)
    with pytest.raises(ConfigError, match=said):
        opened(folder, "always")
    assert opened(folder).bos_policy == "tokenizer has none"


@pytest.mark.parametrize(
    ("before", "after", "bos", "policy"),
    [
        ("<s>", "</s>", "tokenizer", "added; </s> after the text is left off"),
        ("", "</s>", "tokenizer", "tokenizer does not add it; </s> after the text is left off"),
        ("<s>", "</s>", "never", "left off, as bos: never asks; </s> after the text is left off"),
        ("<s>", "", "never", "left off, as bos: never asks"),
    ],
)
def test_what_a_template_puts_around_a_text_is_said(tmp_path, before, after, bos, policy):
    made = opened(folder_of(tmp_path, "llama", zoo.saved(zoo.byte_level(before=before, after=after))), bos)
    assert made.bos_policy == policy
    assert made.encode("Alice") == [0] * (bos == "tokenizer" and before == "<s>") + made.following("a\n", "Alice")


NOTES = {
    "two BOS": ("<s>Alice gave", " Bob", "read after 2 BOS tokens (<s>)"),
    "a special token": ("Alice <|user|> gave", " Bob", "holds '<|user|>', which is read as a special token"),
    "a long prompt": ("Alice " * 30 + "gave", " Bob", "tokens, beyond the 20 that the checkpoint states"),
    "two spaces": ("Alice gave ", " Bob", "the answer is read after two spaces"),
}


@pytest.mark.parametrize("case", NOTES)
def test_what_makes_a_prompt_other_than_it_looks_is_said(tmp_path, case):
    made = opened(folder_of(tmp_path, "llama", zoo.saved(zoo.byte_level(before="<s>"))))
    text, target, said = NOTES[case]
    assert any(said in note for note in notes(made, 20, text, target))
    assert not list(notes(made, 20, "Alice gave", " Bob"))


@pytest.mark.parametrize("use", ["encode", "following", "word"])
def test_a_token_without_a_row_is_refused_wherever_it_comes_from(tmp_path, use):
    made = opened(folder_of(tmp_path, "llama", zoo.saved(zoo.byte_level()), vocab_size=343))
    calls = {
        "encode": lambda: made.encode("<|user|>Alice"),
        "following": lambda: made.following("Alice", "<|user|>"),
        "word": lambda: made.word("<|user|>"),
    }
    with pytest.raises(PromptError, match=r"'<\|user\|>' \(id 344\).*the token table of tiny has 343 rows"):
        calls[use]()
    assert made.encode("Alice")


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        (
            "The capital of France is ",
            "Paris",
            "move the space from the end of the text to the target: .*is' and ' Paris'",
        ),
        ("gave the bo", "ok", "needs a leading space: ' ok'"),
        ("gave", "", "choose another target"),
    ],
)
@pytest.mark.parametrize("kind", ["byte-level", "Metaspace", "Metaspace in the normalizer"])
def test_a_remedy_for_a_target_leads_to_no_other_fault(tmp_path, kind, text, target, said):
    made = opened(folder_of(tmp_path, *zoo.ZOO[kind]))
    with pytest.raises(PromptError, match=said):
        made.following(text, target)
    if target:
        made.following(text.rstrip(" "), f" {target}")
