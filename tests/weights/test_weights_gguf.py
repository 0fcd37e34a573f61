"""A GGUF becomes the checkpoint that it was made from; whatever is not understood is refused by name."""

import json

import numpy as np
import pytest
import tiny_weights as tiny
import torch
from safetensors import safe_open
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, gguf, gguf_config
from tokentrail.weights.checkpoint import open_checkpoint
from tokentrail.weights.fetch import fetch
from tokentrail.weights.tokenizer import open_tokenizer
from transformers import AutoTokenizer


def convert(*parts):
    """Convert a GGUF; its derived files by name, and what it states."""
    files, found = gguf.convert([blobs.store(path, path.name) for path in parts])
    return {blob.name: blob.path for blob in files}, found


def read(path):
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def tokenizer_of(path):
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(convert(path)[0]["tokenizer.json"]))


# --- tensors ---


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_the_checkpoint_comes_back_as_it_was(tmp_path, architecture):
    original = tiny.llama_tensors()
    changes = {}
    if architecture == "qwen3":
        for layer in range(tiny.LAYERS):
            for norm in ("q_norm", "k_norm"):
                values = np.random.default_rng(layer).normal(size=tiny.HEAD_DIM).astype(np.float32)
                original[f"model.layers.{layer}.self_attn.{norm}.weight"] = values
        changes = {"qwen3__rope__dimension_count": None, "qwen3__attention__key_length": tiny.HEAD_DIM}
    files, _ = convert(tiny.gguf(tmp_path / "a.gguf", original, architecture, **changes))
    tensors, _ = read(files["model.safetensors"])
    assert tensors.keys() == original.keys()
    for name, values in original.items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)
    config = json.loads(files["config.json"].read_text())
    assert (config["model_type"], config["head_dim"]) == (architecture, tiny.HEAD_DIM)


@pytest.mark.parametrize("quantized", ["Q4_1", "Q8_0", "F16"])
def test_dequantized_values_are_those_of_the_gguf_package(tmp_path, quantized):
    from gguf import GGMLQuantizationType, dequantize, quantize

    kind = GGMLQuantizationType[quantized]
    original = tiny.llama_tensors()
    files, found = convert(tiny.gguf(tmp_path / "a.gguf", original, quantized=quantized))
    tensors, metadata = read(files["model.safetensors"])
    stored = json.loads(metadata["stored"])
    for name, values in original.items():
        if values.ndim == 2:
            packed = quantize(values, kind)
            values = dequantize(packed, kind)
            assert stored[name] == {"dtype": quantized, "bytes": packed.nbytes}
        else:
            assert stored[name] == {"dtype": "F32", "bytes": values.nbytes}
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)
    assert found["dtypes"] == sorted({"F32", quantized})


def test_transformers_reads_the_same_model_from_both(tmp_path):
    from transformers import LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    path = tiny.gguf(tmp_path / "a.gguf", quantized="Q4_1")
    files, _ = convert(path)
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).symlink_to(files[name])
    ours = LlamaForCausalLM.from_pretrained(folder).eval()
    with torch.device("meta"):
        frame = LlamaForCausalLM(ours.config)
    theirs = load_gguf_checkpoint(path, return_tensors=True, model_to_load=frame)["tensors"]
    state = ours.state_dict()
    assert set(state) - set(theirs) == {"lm_head.weight"}
    assert all(torch.equal(state[name], values) for name, values in theirs.items())
    assert torch.isfinite(ours(torch.tensor([[3, 1, 4, 1, 5]])).logits).all()


def test_a_head_of_its_own_is_kept(tmp_path):
    original = tiny.llama_tensors()
    original["lm_head.weight"] = original["model.embed_tokens.weight"] + 1
    files, _ = convert(tiny.gguf(tmp_path / "a.gguf", original))
    tensors, _ = read(files["model.safetensors"])
    np.testing.assert_array_equal(tensors["lm_head.weight"], original["lm_head.weight"])
    assert json.loads(files["config.json"].read_text())["tie_word_embeddings"] is False


def test_a_conversion_is_found_again_and_is_the_same_byte_for_byte(tmp_path, monkeypatch):
    path = tiny.gguf(tmp_path / "a.gguf", quantized="Q4_1")
    first, stated = convert(path)
    hashes = {name: tiny.sha256(file) for name, file in first.items()}
    monkeypatch.setattr(gguf, "_convert", lambda _: pytest.fail("it was converted again"))
    assert convert(path) == (first, stated)
    monkeypatch.undo()
    monkeypatch.setenv("TOKENTRAIL_CACHE", str(tmp_path / "another cache"))
    again, _ = convert(path)
    assert {name: tiny.sha256(file) for name, file in again.items()} == hashes
    assert first["config.json"] != again["config.json"]


def test_a_derived_file_that_is_gone_is_made_again(tmp_path):
    path = tiny.gguf(tmp_path / "a.gguf")
    first, _ = convert(path)
    first["tokenizer.json"].unlink()
    assert convert(path)[0] == first
    assert first["tokenizer.json"].is_file()


def test_another_converter_version_does_not_reuse_the_files(tmp_path, monkeypatch):
    path = tiny.gguf(tmp_path / "a.gguf")
    convert(path)
    monkeypatch.setattr(gguf, "CONVERTER", "next")
    converted = []
    real = gguf._convert
    monkeypatch.setattr(gguf, "_convert", lambda blob: converted.append(blob) or real(blob))
    convert(path)
    assert len(converted) == 1


# --- what is refused ---


def test_an_unknown_architecture_is_refused_by_name(tmp_path):
    with pytest.raises(WeightsError, match=r"a\.gguf has the architecture 'mamba2'.*llama or qwen3"):
        convert(tiny.gguf(tmp_path / "a.gguf", architecture="mamba2"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rope.scaling.type", "yarn"),
        ("rope.scaling.factor", 8.0),
        ("attention.sliding_window", 4096),
        ("attention.scale", 0.25),
        ("expert_count", 8),
        ("logit_scale", 2.0),
    ],
)
def test_a_key_that_would_change_the_pass_is_refused_by_name(tmp_path, key, value):
    changes = {f"llama.{key}".replace(".", "__"): value}
    with pytest.raises(WeightsError, match=f"states llama.{key} = {value}, which is not supported"):
        convert(tiny.gguf(tmp_path / "a.gguf", **changes))


def test_keys_at_values_that_change_nothing_are_let_through(tmp_path):
    convert(tiny.gguf(tmp_path / "a.gguf", llama__expert_count=0, llama__rope__scaling__type="none"))


@pytest.mark.parametrize(
    "key",
    [
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.layer_norm_rms_epsilon",
        "rope.freq_base",
    ],
)
def test_a_missing_number_is_named_and_not_guessed(tmp_path, key):
    changes = {f"llama.{key}".replace(".", "__"): None}
    with pytest.raises(WeightsError, match=f"lacks llama.{key}, which must be one number"):
        convert(tiny.gguf(tmp_path / "a.gguf", **changes))


def test_head_counts_that_differ_by_layer_are_refused(tmp_path):
    with pytest.raises(WeightsError, match=r"states \[4, 2\] for llama.attention.head_count,"):
        convert(tiny.gguf(tmp_path / "a.gguf", llama__attention__head_count=[4, 2]))


@pytest.mark.parametrize("key", ["rope.dimension_count", "attention.value_length"])
def test_partial_rotary_and_uneven_heads_are_refused(tmp_path, key):
    changes = {"llama__attention__key_length": tiny.HEAD_DIM, f"llama.{key}".replace(".", "__"): 8}
    with pytest.raises(WeightsError, match=f"states llama.{key} = 8 for heads of 16"):
        convert(tiny.gguf(tmp_path / "a.gguf", **changes))


@pytest.mark.parametrize("name", ["rope_freqs.weight", "blk.0.attn_q.bias"])
def test_a_tensor_without_a_place_is_refused_by_name(tmp_path, name):
    extra = tiny.llama_tensors() | {name: np.ones(tiny.HIDDEN, np.float32)}
    with pytest.raises(WeightsError, match=f"tensors that a llama model does not have .{name}"):
        convert(tiny.gguf(tmp_path / "a.gguf", extra))


def test_a_missing_tensor_is_named(tmp_path):
    incomplete = tiny.llama_tensors()
    del incomplete["model.layers.1.mlp.up_proj.weight"]
    with pytest.raises(WeightsError, match=r"lacks the tensor model\.layers\.1\.mlp\.up_proj\.weight"):
        convert(tiny.gguf(tmp_path / "a.gguf", incomplete))


def test_a_tensor_of_another_shape_is_named(tmp_path):
    wrong = tiny.llama_tensors() | {"model.norm.weight": np.ones(32, np.float32)}
    with pytest.raises(WeightsError, match=r"output_norm\.weight in a\.gguf has the shape \(32,\).*\(64,\)"):
        convert(tiny.gguf(tmp_path / "a.gguf", wrong))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_tensor_with_nan_or_infinity_is_named(tmp_path, value, own_cache):
    broken = tiny.llama_tensors()
    broken["model.layers.1.mlp.up_proj.weight"][5, 5] = value
    with pytest.raises(WeightsError, match=r"blk\.1\.ffn_up\.weight in a\.gguf holds NaN or infinity"):
        convert(tiny.gguf(tmp_path / "a.gguf", broken))
    assert not list((own_cache / "blobs").rglob("model.safetensors"))


@pytest.mark.parametrize("kept", [0, 3, 30, 3000, -4])
def test_a_truncated_file_is_named(tmp_path, kept):
    path = tiny.gguf(tmp_path / "a.gguf")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(WeightsError, match=r"a\.gguf is not a GGUF file, or it is truncated or damaged"):
        convert(path)


def test_a_file_of_another_kind_is_named(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(b"PK\3\4" * 100)
    with pytest.raises(WeightsError, match=r"a\.gguf is not a GGUF file"):
        convert(path)


# --- in parts ---


def split(folder, count=3, **changes):
    """A tiny Llama in several files, as llama.cpp's gguf-split writes them: only the first says what it is."""
    weights = tiny.llama_tensors()
    names = list(weights)
    unknown = dict.fromkeys(tiny.metadata())
    return [
        tiny.gguf(
            folder / f"tiny-{part + 1:05}-of-{count:05}.gguf",
            weights={name: weights[name] for name in names[part::count]},
            **(unknown if part else {}) | {"split__no": part, "split__count": count} | changes,
        )
        for part in range(count)
    ]


def test_a_file_in_parts_is_the_whole_one(tmp_path):
    whole, _ = convert(tiny.gguf(tmp_path / "whole.gguf"))
    folder = tmp_path / "parts"
    split(folder)
    weights = fetch("tiny", tiny.folder_source(folder), "", tmp_path / "lock.json")
    opened = open_checkpoint(weights)
    assert weights.filter(role="source")["file"].to_list() == sorted(path.name for path in folder.iterdir())
    expected, found = (read(path)[0] for path in (whole["model.safetensors"], opened.tensor_files[0]))
    assert set(found) == set(expected) and all(np.array_equal(found[name], expected[name]) for name in expected)


def test_parts_that_do_not_belong_together_are_named_with_the_remedy(tmp_path):
    parts = split(tmp_path)
    for given in (parts[:1], parts[:2], [parts[0], parts[2], parts[1]]):
        with pytest.raises(WeightsError, match=r"says that it is part \d of 3 .*`llama-gguf-split --merge`"):
            convert(*given)


# --- config.json ---


def test_the_config_states_everything(tmp_path):
    files, _ = convert(tiny.gguf(tmp_path / "a.gguf"))
    assert json.loads(files["config.json"].read_text()) == {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "dtype": "float32",
        "eos_token_id": 2,
        "head_dim": tiny.HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": tiny.HIDDEN,
        "intermediate_size": tiny.FFN,
        "max_position_embeddings": 128,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": tiny.HEADS,
        "num_hidden_layers": tiny.LAYERS,
        "num_key_value_heads": tiny.KV_HEADS,
        "pad_token_id": None,
        "rms_norm_eps": 1e-05,
        "rope_parameters": {"rope_theta": 130000.0, "rope_type": "default"},
        "rope_theta": 130000.0,
        "tie_word_embeddings": True,
        "vocab_size": len(tiny.vocabulary()),
    }


@pytest.mark.parametrize("value", [1e-5, 1e-6, 5e-6, 1e-12, 10000.0, 500000.0, 130000.0, 0.1, 1 / 3])
def test_the_shortest_decimal_is_the_same_float32(value):
    single = float(np.float32(value))
    shortest = gguf_config.shortest_decimal(single)
    assert np.float32(shortest) == np.float32(value)
    assert len(repr(shortest)) <= len(repr(single))


def test_an_epsilon_of_one_in_a_hundred_thousand_is_written_as_such():
    assert gguf_config.shortest_decimal(9.999999747378752e-06) == 1e-05


# --- tokenizer.json ---


def test_smollm_cuts_digits_one_by_one(tmp_path):
    pieces = tokenizer_of(tiny.gguf(tmp_path / "a.gguf")).encode("the 12 the").tokens
    assert pieces == ["the", "Ġ", "1", "2", "Ġthe"]


def test_gpt2_lets_digits_stand_together(tmp_path):
    tokenizer = tokenizer_of(tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__pre="gpt-2"))
    assert tokenizer.encode("the 12 the").tokens == ["the", "Ġ", "12", "Ġthe"]


def test_smollm_is_the_published_pre_tokenizer(tmp_path):
    files, _ = convert(tiny.gguf(tmp_path / "a.gguf"))
    stated = json.loads(files["tokenizer.json"].read_text())
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    assert stated["pre_tokenizer"] == {"type": "Sequence", "pretokenizers": [digits, byte_level]}
    assert stated["decoder"]["type"] == "ByteLevel"
    assert stated["normalizer"] is None
    assert stated["post_processor"] is None


def test_any_text_comes_back_and_special_tokens_stay_whole(tmp_path):
    tokenizer = tokenizer_of(tiny.gguf(tmp_path / "a.gguf"))
    text = "é 日本 😀\n\t  x  12 <b>"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    encoded = tokenizer.encode("<|im_start|>the")
    assert encoded.tokens == ["<|im_start|>", "the"]
    assert tokenizer.decode(encoded.ids, skip_special_tokens=True) == "the"
    added = tokenizer.get_added_tokens_decoder()
    assert {index: token.content for index, token in added.items() if token.special} == dict(enumerate(tiny.SPECIAL))
    assert tokenizer.get_vocab_size() == len(tiny.vocabulary())


def test_no_bos_is_added_unless_the_file_asks(tmp_path):
    path = tiny.gguf(tmp_path / "a.gguf")
    assert tokenizer_of(path).encode("the").tokens == ["the"]
    path = tiny.gguf(tmp_path / "b.gguf", tokenizer__ggml__add_bos_token=True)
    assert tokenizer_of(path).encode("the").tokens == ["<|im_start|>", "the"]


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("eos", [False, True])
@pytest.mark.parametrize("pre", ["gpt-2", "qwen2"])
def test_a_gguf_is_cut_as_transformers_cuts_it(tmp_path, pre, bos, eos):
    asked = {"tokenizer__ggml__add_bos_token": bos, "tokenizer__ggml__add_eos_token": eos}
    path = tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__pre=pre, **asked)
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    weights = fetch("tiny", tiny.folder_source(tmp_path), "", tmp_path / "lock.json")
    ours = open_tokenizer(open_checkpoint(weights), "tokenizer", "tiny")
    for text in ("the 12 the", " the", "the ", "<|im_start|>the<|im_end|> the", "the\u2581the"):
        assert ours.encode(text) + ours.suffix == theirs.encode(text)
    assert ours.bos_policy.startswith("added" if bos else "tokenizer does not add it")
    assert ours.bos_policy.endswith("; <|im_end|> after the text is left off") == eos
    always = open_tokenizer(open_checkpoint(weights), "always", "tiny")
    assert (always.prefix, always.bos_policy.partition(";")[0]) == ([1], "added")


@pytest.mark.parametrize("role", ["bos", "eos"])
def test_a_token_that_is_asked_for_and_not_named_is_refused(tmp_path, role):
    changes = {f"tokenizer__ggml__add_{role}_token": True, f"tokenizer__ggml__{role}_token_id": None}
    with pytest.raises(WeightsError, match=f"asks for a {role.upper()} token and names none"):
        convert(tiny.gguf(tmp_path / "a.gguf", **changes))


def test_llama3_adds_bos_takes_whole_words_and_cuts_three_digits(tmp_path):
    tokens = [*tiny.vocabulary(), "Ġword"]  # a token that no merge makes
    changes = {
        "tokenizer__ggml__pre": "llama-bpe",
        "tokenizer__ggml__tokens": tokens,
        "tokenizer__ggml__token_type": [3, 3, 3] + [1] * (len(tokens) - 3),
        "tokenizer__ggml__add_bos_token": None,
        "llama__vocab_size": len(tokens),
    }
    weights = tiny.llama_tensors() | {"model.embed_tokens.weight": np.ones((len(tokens), 64), np.float32)}
    tokenizer = tokenizer_of(tiny.gguf(tmp_path / "a.gguf", weights, **changes))
    assert tokenizer.encode("the word").tokens == ["<|im_start|>", "the", "Ġword"]
    assert [text for text, _ in tokenizer.pre_tokenizer.pre_tokenize_str("12345")] == ["123", "45"]


def test_qwen2_normalizes_and_cuts_single_digits(tmp_path):
    tokenizer = tokenizer_of(tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__pre="qwen2"))
    assert tokenizer.normalizer.normalize_str("e\u0301") == "é"
    assert [text for text, _ in tokenizer.pre_tokenizer.pre_tokenize_str("123")] == ["1", "2", "3"]


@pytest.mark.parametrize("pre", ["deepseek-llm", "default", None])
def test_an_unknown_pre_tokenizer_is_refused_by_name(tmp_path, pre):
    with pytest.raises(WeightsError, match=f"tokenizer.ggml.pre = {pre!r}, .*gpt-2, .*qwen2, smollm"):
        convert(tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__pre=pre))


@pytest.mark.parametrize("kind", ["llama", "t5", None])
def test_another_kind_of_tokenizer_is_refused_by_name(tmp_path, kind):
    with pytest.raises(WeightsError, match=f"tokenizer.ggml.model = {kind!r}, which is not supported"):
        convert(tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__model=kind))


def test_merges_that_do_not_fit_the_vocabulary_are_named(tmp_path):
    with pytest.raises(WeightsError, match=r"merges in a\.gguf do not fit"):
        convert(tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__merges=["zz zzz"]))


def test_a_token_listed_twice_is_named(tmp_path):
    tokens = tiny.vocabulary()
    tokens[-1] = tokens[-2]
    with pytest.raises(WeightsError, match="lists a token twice"):
        convert(tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__tokens=tokens))


def test_a_special_token_beyond_the_vocabulary_is_named(tmp_path):
    with pytest.raises(WeightsError, match="token id of 99999"):
        convert(tiny.gguf(tmp_path / "a.gguf", tokenizer__ggml__eos_token_id=99999))


# --- through fetch ---


def test_a_folder_with_a_gguf_gives_a_whole_checkpoint(tmp_path):
    path = tiny.gguf(tmp_path / "model" / "a.gguf", quantized="Q8_0")
    weights = fetch("tiny", tiny.folder_source(path.parent), "", tmp_path / "lock.json")
    assert weights.select("file", "role", "stored_dtype", "pinned", "license").rows() == [
        ("a.gguf", "source", "F32, Q8_0", "lock", "apache-2.0"),
        ("config.json", "derived", "", "derived", "apache-2.0"),
        ("model.safetensors", "derived", "F32", "derived", "apache-2.0"),
        ("tokenizer.json", "derived", "", "derived", "apache-2.0"),
    ]
    assert list(json.loads((tmp_path / "lock.json").read_text()).popitem()[1]) == ["a.gguf"]
    opened = open_checkpoint(weights)
    assert opened.stored("model.embed_tokens.weight") == ("Q8_0", len(tiny.vocabulary()) * 64 // 32 * 34)
    assert opened.stored("model.norm.weight") == ("F32", 256)
    assert opened.shape("model.layers.0.self_attn.k_proj.weight") == (32, 64)
    assert opened.tokenizer_file.name == "tokenizer.json"


def test_a_checkpoint_opens_without_the_gguf_that_it_was_made_from(tmp_path, own_cache):
    path = tiny.gguf(tmp_path / "model" / "a.gguf")
    weights = fetch("tiny", tiny.folder_source(path.parent), "", tmp_path / "lock.json")
    next((own_cache / "blobs").rglob("a.gguf")).unlink()
    assert "a.gguf" not in open_checkpoint(weights).files
