"""Folders of safetensors: what is taken, what is refused, and what the table and the checkpoint say."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
import tiny_weights as tiny
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch
from tokentrail import tables
from tokentrail.errors import WeightsError
from tokentrail.weights import blobs, inspection
from tokentrail.weights.checkpoint import open_checkpoint
from tokentrail.weights.fetch import fetch


@pytest.fixture
def folder(tmp_path):
    return tiny.checkpoint(tmp_path / "model")


@pytest.fixture
def get(tmp_path, folder):
    """Fetch the folder, with pins."""
    return lambda **pins: fetch("tiny", tiny.folder_source(folder, **pins), "", tmp_path / "lock.json")


def test_every_used_file_is_listed_with_its_hash(folder, get, tmp_path):
    (folder / "README.md").write_text("not used")
    weights = get()
    assert weights["file"].to_list() == ["config.json", "model.safetensors", "tokenizer.json"]
    for row in weights.rows(named=True):
        path = folder / row["file"]
        assert (row["sha256"], row["bytes"]) == (tiny.sha256(path), path.stat().st_size)
        assert (row["role"], row["source"], row["revision"], row["pinned"]) == ("source", "model", "", "lock")
    assert weights["stored_dtype"].to_list() == ["", "F32", ""]
    tables.write("weights", weights, tmp_path / "weights.parquet")


def test_pins_are_told_from_records_and_the_configured_license_is_kept(folder, tmp_path):
    source = tiny.folder_source(folder, **{"model.safetensors": tiny.sha256(folder / "model.safetensors")})
    weights = fetch("tiny", source, "apache-2.0", tmp_path / "lock.json")
    assert weights["pinned"].to_list() == ["lock", "config", "lock"]
    assert weights["license"].unique().to_list() == ["apache-2.0"]


def test_a_wrong_pin_keeps_the_file_out(get, folder, own_cache):
    found = tiny.sha256(folder / "model.safetensors")
    with pytest.raises(WeightsError, match=f"model.safetensors of folder:.*{found}.*pins {'0' * 64}"):
        get(**{"model.safetensors": "0" * 64})
    assert not list((own_cache / "blobs").rglob("model.safetensors"))


def test_a_pin_of_a_file_that_is_not_used_is_named(get):
    with pytest.raises(WeightsError, match=r"pins model\.safetensor, but the files used are config\.json"):
        get(**{"model.safetensor": "0" * 64})


def test_a_file_that_changed_since_it_was_recorded_is_named(get, folder, tmp_path):
    get()
    before = (tmp_path / "lock.json").read_text()
    recorded = tiny.sha256(folder / "model.safetensors")
    save_file(tiny.tensors(seed=1), folder / "model.safetensors")
    found = tiny.sha256(folder / "model.safetensors")
    with pytest.raises(WeightsError, match=f"{found}.*lock.json recorded {recorded}"):
        get()
    assert (tmp_path / "lock.json").read_text() == before


def test_the_folder_is_left_as_it_is(get, folder):
    before = {path: (path.stat().st_mode, path.stat().st_nlink, path.read_bytes()) for path in folder.iterdir()}
    get()
    assert {path: (path.stat().st_mode, path.stat().st_nlink, path.read_bytes()) for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(get, folder, name):
    (folder / name).unlink()
    with pytest.raises(WeightsError, match=f"folder .*holds.* {name}"):
        get()


@pytest.mark.parametrize("name", ["model.bin", "m.pt", "m.pth", "m.ckpt", "m.pkl", "m.h5", "m.msgpack"])
def test_pickled_weights_are_refused_by_name(get, folder, name):
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(WeightsError, match=f"only as {name}, .*refused"):
        get()


def test_a_folder_that_is_not_there_or_is_a_file_is_named(folder, tmp_path):
    for path, problem in ((tmp_path / "nowhere", "does not exist"), (folder / "config.json", "is a file")):
        with pytest.raises(WeightsError, match=f"source.path is {path}, which {problem}"):
            fetch("tiny", tiny.folder_source(path), "", tmp_path / "lock.json")


def other_names(folder, *names):
    """The folder's tensors under other names, all alike."""
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("a.gguf", "b.gguf"), r"2 GGUF files \(a\.gguf, b\.gguf\); choose one of them with source\.file"),
        (("a.safetensors",), r"neither .* but a\.safetensors; choose one with source\.file"),
        (("x-00001-of-00002.gguf",), r"lacks x-00002-of-00002\.gguf, one of 2 parts of a file; add that part to it"),
        (("x-00002-of-00002.safetensors",), r"lacks x-00001-of-00002\.safetensors, one of 2 parts"),
        (
            ("x-00001-of-00001.safetensors", "y-00001-of-00001.safetensors"),
            r"parts of 2 models \(x-.*, y-.*\) and no model\.safetensors\.index\.json; choose one with source\.file",
        ),
        (("adapter_config.json", "adapter_model.safetensors"), "an adapter .*without its base; merge the two"),
    ],
)
def test_what_is_not_clear_leaves_the_choice_to_the_user(get, folder, names, sentence):
    other_names(folder, *names)
    with pytest.raises(WeightsError, match=sentence):
        get()


@pytest.mark.parametrize(
    ("names", "file", "taken"),
    [
        (("a.safetensors", "b.safetensors"), "b.safetensors", ["b.safetensors"]),
        (("x-00001-of-00001.safetensors",), "", ["x-00001-of-00001.safetensors"]),
        (("model.safetensors", "b.safetensors"), "b.safetensors", ["b.safetensors"]),
        (("model.safetensors", "b.safetensors"), "", ["model.safetensors"]),
    ],
)
def test_a_choice_is_followed(folder, tmp_path, names, file, taken):
    other_names(folder, *names)
    source = tiny.folder_source(folder) | {"file": file}
    weights = fetch("tiny", source, "", tmp_path / "lock.json")
    assert [name for name in weights["file"] if name.endswith(".safetensors")] == taken


def test_a_choice_may_lie_in_a_folder_below(folder, tmp_path):
    below = tiny.checkpoint(folder / "below", tiny.tensors(seed=1))
    for file in ("below", "below/model.safetensors"):
        weights = fetch("tiny", tiny.folder_source(folder) | {"file": file}, "", tmp_path / "lock.json")
        assert tiny.sha256(below / "model.safetensors") in weights["sha256"].to_list()
        (tmp_path / "lock.json").unlink()
    for file in ("nowhere", "below/other.gguf"):
        with pytest.raises(WeightsError, match=f"folder .* holds no {file}, but .*; correct source.file"):
            fetch("tiny", tiny.folder_source(folder) | {"file": file}, "", tmp_path / "lock.json")


def test_shards_without_an_index_are_one_model(get, folder):
    stored = tiny.tensors()
    (folder / "model.safetensors").unlink()
    for number, name in enumerate(stored, start=1):
        save_file({name: stored[name]}, folder / f"model-{number:05}-of-00002.safetensors")
    assert open_checkpoint(get()).tensor_names() == sorted(stored)


# --- config.json ---


def test_the_configuration_changes_the_config_and_the_table_says_so(folder, tmp_path):
    stated = {"model_type": "gpt2", "n_embd": 3, "unsloth_fixed": True, "rope_parameters": {"a": 1, "b": 2}}
    (folder / "config.json").write_text(json.dumps(stated))
    changes = {"unsloth_fixed": None, "rope_theta": 10000.0, "rope_parameters": {"b": None, "c": 3}}

    def get(changes):
        return fetch("tiny", tiny.folder_source(folder), "", tmp_path / "lock.json", changes)

    changed = get(changes)
    rows = changed.filter(file="config.json").select("role", "pinned", "changes").rows()
    assert rows == [("source", "lock", ""), ("derived", "derived", json.dumps(changes))]
    assert changed.filter(pl.col("file") != "config.json")["changes"].unique().to_list() == [""]
    expected = {"model_type": "gpt2", "n_embd": 3, "rope_theta": 10000.0, "rope_parameters": {"a": 1, "c": 3}}
    assert open_checkpoint(changed).config == expected
    assert open_checkpoint(get(None)).config == open_checkpoint(get({})).config == stated
    assert json.loads((folder / "config.json").read_text()) == stated


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_files_of_another_editor_are_read(folder, tmp_path, mark, ends):
    """With a byte order mark and with other line ends."""
    shard(folder)
    lock = tmp_path / "lock.json"
    fetch("tiny", tiny.folder_source(folder), "", lock)
    lock.write_text(mark + lock.read_text().replace("\n", ends), encoding="utf-8", newline="")
    names = ("config.json", "model.safetensors.index.json")
    again = shutil.copytree(folder, tmp_path / "again")
    for name in names:
        text = json.dumps(json.loads((folder / name).read_text()), indent=1).replace("\n", ends)
        (again / name).write_text(mark + text, encoding="utf-8", newline="")
    fetch("tiny", tiny.folder_source(folder), "", lock)
    opened = open_checkpoint(fetch("tiny", tiny.folder_source(again), "", lock))
    assert opened.config == {"model_type": "gpt2", "n_embd": 3} and len(opened.tensor_names()) == 2


def test_vocab_and_merges_stand_in_for_a_tokenizer_json(get, folder):
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text('{"a": 0}')
    (folder / "merges.txt").write_text("")
    (folder / "tokenizer_config.json").write_text("{}")
    weights = get()
    assert weights.filter(pl.col("role") == "derived")["file"].to_list() == ["tokenizer.json"]
    opened = open_checkpoint(weights)
    assert opened.tokenizer_file.name == "tokenizer.json"
    assert {"merges.txt", "tokenizer_config.json", "vocab.json"} <= opened.files.keys()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vocab.json": "{}"}, "vocab.json of model lists no token"),
        ({"vocab.json": "["}, "vocab.json of the model is not a JSON object"),
        ({"merges.txt": "a b"}, "merges.txt and vocab.json of model do not fit together"),
        ({"merges.txt": "a"}, "merges.txt and vocab.json of model do not fit together"),
        ({"config.json": '{"model_type": "granitemoehybrid"}'}, "put the tokenizer.json .* into a copy"),
        ({"config.json": '{"model_type": "llama"}'}, "put the tokenizer.json .* into a copy"),
        (
            {"tokenizer_config.json": '{"add_bos_token": true, "bos_token": "<s>"}'},
            "asks for '<s>' around each text, but vocab.json has no such token",
        ),
        ({"added_tokens.json": '{"<x>": 7}'}, "the added token '<x>' has the id 7 .* but 1 after"),
    ],
)
def test_a_vocabulary_without_rules_or_merges_is_refused_before_anything_runs(get, folder, changes, said):
    (folder / "tokenizer.json").unlink()
    for name, text in ({"vocab.json": '{"a": 0}', "merges.txt": ""} | changes).items():
        (folder / name).write_text(text)
    with pytest.raises(WeightsError, match=said):
        get()


# --- what is inside the tensor files ---


@pytest.mark.parametrize("cut", [0, 4, 40, -1])
def test_a_truncated_file_is_named(get, folder, cut):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(WeightsError, match=r"model\.safetensors is (truncated|not a safetensors file)"):
        get()


def test_bytes_after_the_tensors_are_named(get, folder):
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b"more")
    with pytest.raises(WeightsError, match="longer than its tensors"):
        get()


@pytest.mark.parametrize("text", [b"[]", b"{}x", b'{"a": 1}', b'{"a": {"dtype": "F32"}}'])
def test_a_header_that_is_none_is_named(get, folder, text):
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(WeightsError, match="not a safetensors file: its header is no valid JSON"):
        get()


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_tensor_with_nan_or_infinity_is_named(get, folder, value, kind):
    stored = {name: torch.from_numpy(values).to(kind) for name, values in tiny.tensors().items()}
    stored["ln_f.weight"][1, 2] = value
    save_torch(stored, folder / "model.safetensors")
    for _ in range(2):  # a file that was refused is refused again, not taken as inspected
        with pytest.raises(WeightsError, match=r"ln_f\.weight in model\.safetensors holds NaN or infinity"):
            get()


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_the_largest_numbers_of_a_format_are_no_infinity(get, folder, kind):
    limits = torch.finfo(kind)
    values = torch.tensor([limits.max, limits.min, limits.tiny, 0.0, -0.0], dtype=kind)
    save_torch({"a": values}, folder / "model.safetensors")
    assert get()["file"].len() == 3


def test_a_nan_beyond_the_first_block_is_found(get, folder, monkeypatch):
    monkeypatch.setattr(inspection, "BLOCK", 16)
    stored = tiny.tensors()
    stored["wte.weight"][-1, -1] = np.nan
    save_file(stored, folder / "model.safetensors")
    with pytest.raises(WeightsError, match=r"wte\.weight"):
        get()


def test_tensors_that_overlap_are_named(get, folder):
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"[48,96]", b"[47,96]"))
    with pytest.raises(WeightsError, match=r"model\.safetensors is not a valid safetensors file"):
        get()


def test_every_floating_format_is_read_and_named(get, folder):
    formats = {"a": torch.float32, "b": torch.float16, "c": torch.bfloat16, "d": torch.float64}
    save_torch({name: torch.ones(2, dtype=kind) for name, kind in formats.items()}, folder / "model.safetensors")
    weights = get()
    assert weights["stored_dtype"].to_list() == ["", "BF16, F16, F32, F64", ""]
    opened = open_checkpoint(weights)
    assert {name: opened.stored(name) for name in opened.tensor_names()} == {
        "a": ("F32", 8),
        "b": ("F16", 4),
        "c": ("BF16", 4),
        "d": ("F64", 16),
    }


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_packed_numbers_are_refused_by_name(get, folder, kind):
    save_torch({"a": torch.ones(2), "packed": torch.ones(2).to(kind)}, folder / "model.safetensors")
    with pytest.raises(WeightsError, match=r"packed in model\.safetensors is stored as"):
        get()


def test_the_causal_mask_of_old_gpt2_checkpoints_is_let_through(get, folder):
    stored = {"wte.weight": torch.ones(2), "h.0.attn.bias": torch.ones(2).to(torch.uint8)}
    save_torch(stored, folder / "model.safetensors")
    assert get()["stored_dtype"].to_list() == ["", "F32, U8", ""]


def test_a_file_is_inspected_once(get, folder, monkeypatch):
    inspected = []
    real = inspection._inspect
    monkeypatch.setattr(inspection, "_inspect", lambda blob: inspected.append(blob.name) or real(blob))
    assert get().equals(get())
    assert inspected == ["model.safetensors"]


# --- shards ---


def shard(folder, names=("part-1.safetensors", "part-2.safetensors")):
    stored = tiny.tensors()
    for file, name in zip(names, stored, strict=True):
        save_file({name: stored[name]}, folder / file)
    index = {"weight_map": dict(zip(stored, names, strict=True))}
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_are_found_through_the_index(get, folder):
    shard(folder)
    weights = get()
    opened = open_checkpoint(weights)
    assert [path.name for path in opened.tensor_files] == ["part-1.safetensors", "part-2.safetensors"]
    assert opened.tensor_names() == ["ln_f.weight", "wte.weight"]
    assert opened.file_of("ln_f.weight").name == "part-2.safetensors"
    assert "model.safetensors.index.json" in weights["file"].to_list()


def test_a_missing_shard_is_named(get, folder):
    shard(folder)
    (folder / "part-2.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"part-2\.safetensors in folder .* cannot be read"):
        get()


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/x.safetensors", "pytorch_model.bin"])
def test_an_index_that_points_elsewhere_is_refused(get, folder, name):
    shard(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(WeightsError, match=f"names '{name}', which is not a plain"):
        get()


def test_a_damaged_index_is_named(get, folder):
    shard(folder)
    (folder / "model.safetensors.index.json").write_text("{")
    with pytest.raises(WeightsError, match="not a valid index"):
        get()


# --- opening ---


def test_a_checkpoint_says_what_it_holds(get):
    weights = get()
    opened = open_checkpoint(weights)
    assert opened.config == {"model_type": "gpt2", "n_embd": 3}
    assert opened.tensor_names() == ["ln_f.weight", "wte.weight"]
    assert opened.shape("wte.weight") == (4, 3)
    assert opened.stored("wte.weight") == ("F32", 48)
    assert opened.tokenizer_file.name == "tokenizer.json"
    with pytest.raises(WeightsError, match=r"model\.safetensors holds no tensor lm_head\.weight"):
        opened.shape("lm_head.weight")


def test_the_identity_follows_the_tensors_and_nothing_else(get, folder, tmp_path):
    first = open_checkpoint(get()).sha256
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "lock.json").unlink()
    assert open_checkpoint(get()).sha256 == first
    save_file(tiny.tensors(seed=1), folder / "model.safetensors")
    (tmp_path / "lock.json").unlink()
    assert open_checkpoint(get()).sha256 != first


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_that_is_gone_from_the_cache_is_named(get, own_cache, name):
    weights = get()
    next((own_cache / "blobs").rglob(name)).unlink()
    with pytest.raises(WeightsError, match=f"{name} is gone from the weights cache .*--cores 4 --forcerun weights"):
        open_checkpoint(weights)


def test_a_file_that_was_changed_in_the_cache_is_not_opened(get, own_cache):
    weights = get()
    path = next((own_cache / "blobs").rglob("model.safetensors"))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(WeightsError, match="was changed after it was cached"):
        open_checkpoint(weights)


def test_a_tensor_in_two_files_is_named(get, folder):
    shard(folder)
    shutil.copy(folder / "part-1.safetensors", folder / "part-2.safetensors")
    with pytest.raises(WeightsError, match=r"wte\.weight is in both part-1\.safetensors and part-2\.safetensors"):
        open_checkpoint(get()).tensor_names()


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_a_config_that_is_no_object_is_named(get, folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(WeightsError, match=r"config\.json of the model is not a JSON object"):
        open_checkpoint(get())


def test_a_table_without_tensors_is_named(get):
    weights = get().filter(pl.col("file") != "model.safetensors")
    with pytest.raises(WeightsError, match="lists no tensors"):
        open_checkpoint(weights)


# --- together ---


def test_processes_that_fetch_at_once_agree_and_record_everything(tmp_path):
    folders = [tiny.checkpoint(tmp_path / "a"), tiny.checkpoint(tmp_path / "b", tiny.tensors(seed=1))]
    lock_file, gate = tmp_path / "lock.json", tmp_path / "go"
    sources = [tiny.folder_source(folder) for folder in folders]
    code = f"""
import time
from pathlib import Path
from tokentrail.weights.fetch import fetch
print("ready", flush=True)
while not Path({str(gate)!r}).exists():
    time.sleep(0.001)
for source in {sources!r}:
    print(fetch("tiny", source, "", Path({str(lock_file)!r})).write_json())
"""
    processes = [tiny.start(code) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    gate.touch()
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert list(json.loads(lock_file.read_text())) == [f"folder:{folder}@" for folder in folders]
    stored = [path for path in (blobs.root() / "blobs").rglob("[!.]*") if path.is_file()]
    assert len(stored) == 4  # both have the same config.json and tokenizer.json
    assert all(tiny.sha256(path) == path.parent.name for path in stored)
    assert not any((blobs.root() / "staging").iterdir())
