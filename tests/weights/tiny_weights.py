"""Tiny checkpoints, GGUF files and wheels, and ways to run the library in another process."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS = 64, 4, 2, 16, 96, 2
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "th e", "Ġ the", "1 2"]


def byte_alphabet() -> list[str]:
    """The 256 characters that GPT-2 writes bytes as."""
    from tokenizers.pre_tokenizers import ByteLevel

    return sorted(ByteLevel.alphabet())


def vocabulary() -> list[str]:
    return SPECIAL + byte_alphabet() + [merge.replace(" ", "") for merge in MERGES]


def sha256(path: Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


# --- safetensors ---


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.normal(size=(4, 3)).astype(np.float32) for name in ("wte.weight", "ln_f.weight")}


def checkpoint(folder: Path, stored: dict[str, np.ndarray] | None = None) -> Path:
    """A folder with the files of a checkpoint; the model itself makes no sense."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_embd": 3}))
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE"}}))
    save_file(tensors() if stored is None else stored, folder / "model.safetensors")
    return folder


def zeros(bytes: int) -> bytes:
    """A safetensors file with one tensor of zeros, of this many bytes."""
    header = b'{"a":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (bytes // 4, bytes)
    return len(header).to_bytes(8, "little") + header + b"\0" * bytes


def folder_source(folder: Path, **pins: str) -> dict:
    return {"kind": "folder", "path": str(folder), "sha256": pins}


# --- GGUF ---


def llama_tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights of a tiny Llama under the names of transformers, norms included."""
    random = np.random.default_rng(seed)
    shapes = {"model.embed_tokens.weight": (len(vocabulary()), HIDDEN), "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        shapes |= {
            f"{prefix}input_layernorm.weight": (HIDDEN,),
            f"{prefix}post_attention_layernorm.weight": (HIDDEN,),
            f"{prefix}self_attn.q_proj.weight": (HEADS * HEAD_DIM, HIDDEN),
            f"{prefix}self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"{prefix}self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"{prefix}self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
            f"{prefix}mlp.gate_proj.weight": (FFN, HIDDEN),
            f"{prefix}mlp.up_proj.weight": (FFN, HIDDEN),
            f"{prefix}mlp.down_proj.weight": (HIDDEN, FFN),
        }
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers": "blk",
    "lm_head": "output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}


def gguf_name(name: str) -> str:
    for theirs, ours in GGUF_NAMES.items():
        name = name.replace(theirs, ours)
    return name


def permute(weight: np.ndarray, heads: int) -> np.ndarray:
    """What llama.cpp's `convert_hf_to_gguf.py` does to q and k of a Llama."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def metadata(architecture: str = "llama") -> dict:
    control = [3] * len(SPECIAL)
    return {
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.context_length": 128,
        f"{architecture}.embedding_length": HIDDEN,
        f"{architecture}.feed_forward_length": FFN,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KV_HEADS,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.dimension_count": HEAD_DIM,
        f"{architecture}.rope.freq_base": 130000.0,
        "general.license": "apache-2.0",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": vocabulary(),
        "tokenizer.ggml.token_type": control + [1] * (len(vocabulary()) - len(SPECIAL)),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
    }


def gguf(
    path: Path,
    weights: dict[str, np.ndarray] | None = None,
    architecture: str = "llama",
    quantized: str = "F32",
    **changes,
) -> Path:
    """A GGUF. `changes` replace metadata, with `__` for a dot; None removes a key."""
    from gguf import GGMLQuantizationType, GGUFWriter, quantize

    path.parent.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(path, architecture)
    stated = metadata(architecture) | {key.replace("__", "."): value for key, value in changes.items()}
    for key, value in stated.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case list():
                writer.add_array(key, value)
            case None:
                pass
    kind = GGMLQuantizationType[quantized]
    for name, weight in (llama_tensors() if weights is None else weights).items():
        if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            weight = permute(weight, HEADS if "q_proj" in name else KV_HEADS)
        if weight.ndim == 2 and quantized != "F32":
            writer.add_tensor(gguf_name(name), quantize(weight, kind), raw_dtype=kind)
        else:
            writer.add_tensor(gguf_name(name), np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


# --- wheels ---


def wheel(folder: Path, members: dict[str, bytes], version: str = "1.0") -> Path:
    """A wheel of the package `tiny-weights` that pip accepts."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"tiny_weights-{version}-py3-none-any.whl"
    info = f"tiny_weights-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: tiny-weights\nVersion: {version}\nLicense: MIT\n\nText.\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def package_source(file: str = "tiny/tiny.gguf", version: str = "1.0", **pins: str) -> dict:
    """A source of kind package; pins by file name are given as a dict under `pins`."""
    return {
        "kind": "package",
        "package": "tiny-weights",
        "version": version,
        "file": file,
        "sha256": pins.get("pins", {}),
    }


# --- other processes ---


def start(code: str, **environment: str) -> subprocess.Popen:
    """Python code in a process of its own, with this one's environment and `environment`."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


NO_ROOM_FOR_DOWNLOADS = """
opened = Path.open
def full(path, mode="r", *rest, **named):
    return opened(Path("/dev/full") if path.name.endswith(".incomplete") else path, mode, *rest, **named)
Path.open = full
"""


def fetch_elsewhere(*sources: dict, lock_file: Path, **environment: str) -> list[tuple[list[dict], str]]:
    """`fetch` in a process of its own: for each source the rows of the table and the sentence of the error.

    BEFORE is code to run first; what the library logs goes to the file LOG.
    """
    before, log = environment.pop("BEFORE", ""), environment.pop("LOG", os.devnull)
    code = f"""
import json, logging
from pathlib import Path
logging.basicConfig(filename={log!r}, format="%(message)s")
logging.getLogger("tokentrail").setLevel(logging.INFO)
{before}
from tokentrail.errors import WeightsError
from tokentrail.weights.fetch import fetch
for source in {sources!r}:
    rows, sentence = [], ""
    try:
        rows = fetch("tiny", source, "", Path({str(lock_file)!r})).rows(named=True)
    except WeightsError as error:
        sentence = str(error)
    print("RESULT" + json.dumps([rows, sentence]))
"""
    output, errors = start(code, **environment).communicate(timeout=120)
    results = [line.removeprefix("RESULT") for line in output.splitlines() if line.startswith("RESULT")]
    assert len(results) == len(sources), errors
    return [tuple(json.loads(line)) for line in results]
