"""From a GGUF to config.json, model.safetensors and tokenizer.json, once, into the cache.

Tensor names and dequantization come from llama.cpp's own `gguf` package, the undoing of its permutation and
the shapes that a model must have from transformers (`modeling_gguf_pytorch_utils.py`). Whatever the file
states and this conversion does not understand is refused by name, because a pass that ignores it would be
wrong.
"""

from __future__ import annotations

import json
from typing import Any

from tokentrail.errors import WeightsError
from tokentrail.weights import cache, gguf_config, gguf_tokenizer
from tokentrail.weights.cache import Blob

CONVERTER = "1"  # raise it whenever the derived files would come out different


def convert(source: Blob) -> tuple[list[Blob], dict[str, Any]]:
    """The derived files of a GGUF, and what it states: `{"dtypes": [...], "license": ...}`.

    Files that this version derived before from the same content are found again; otherwise they are made,
    byte for byte the same each time. Raises WeightsError if the file is damaged or holds a NaN, or if its
    architecture, tokenizer or a key or tensor in it is not supported.
    """
    key = f"gguf {source.sha256} converter {CONVERTER}"
    with cache.lock(key):
        known = cache.recall(key)
        files = [cache.find(name, sha256) for name, sha256 in known.get("files", {}).items()]
        if not files or None in files:
            files, known = _convert(source)
            cache.remember(key, known)
    return files, known


def _convert(source: Blob) -> tuple[list[Blob], dict[str, Any]]:
    from safetensors.torch import save_file
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    reader = _open(source)
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    # The small parts come first: they refuse most of what is not supported, and the tensors take long.
    config = gguf_config.build(metadata, {tensor.name for tensor in reader.tensors}, source.name)
    tokenizer = gguf_tokenizer.build(metadata, GGUF_PRE_TOKENIZER_SPLITS, source.name)
    tensors, stored = _tensors(reader, config, metadata["general.architecture"], source.name)
    with cache.disk_errors(f"the tensors of {source.name}"), cache.staging() as folder:
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        # Only one key: the library writes several in a random order, and the file's hash must not vary.
        save_file(tensors, folder / "model.safetensors", metadata={"stored": json.dumps(stored, sort_keys=True)})
        names = ("config.json", "model.safetensors", "tokenizer.json")
        files = [cache.store(folder / name, name, how="move") for name in names]
    cache.note(files[1], {"dtypes": ["F32"]})
    license = metadata.get("general.license")
    return files, {
        "files": {blob.name: blob.sha256 for blob in files},
        "dtypes": sorted({entry["dtype"] for entry in stored.values()}),
        "license": license if isinstance(license, str) else "",
    }


def _open(source: Blob):
    from gguf import GGUFReader

    try:
        reader = GGUFReader(source.path)
        if "general.architecture" not in reader.fields:
            raise ValueError("it states no general.architecture")
    except (ValueError, KeyError, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise WeightsError(
            f"{source.name} is not a GGUF file, or it is truncated or damaged ({error}); fetch it again"
        ) from None
    return reader


def _tensors(reader, config: dict[str, Any], architecture: str, name: str):
    """All tensors in float32 under their names in transformers, and what the file stores for each."""
    import numpy as np
    import torch
    from gguf import dequantize
    from rich.console import Console
    from rich.progress import track
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor

    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=config)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    if config["tie_word_embeddings"]:
        del shapes["lm_head.weight"]
    renamed = _renamed(architecture, config["num_hidden_layers"], list(shapes))
    if unknown := [tensor.name for tensor in reader.tensors if tensor.name not in renamed]:
        raise WeightsError(
            f"{name} holds tensors that a {config['model_type']} model does not have "
            f"({', '.join(unknown[:5])}); choose a GGUF of a model without them"
        )
    tensors: dict[str, torch.Tensor] = {}
    stored: dict[str, dict[str, Any]] = {}
    progress = track(reader.tensors, f"converting {name}", console=Console(stderr=True), transient=True)
    for tensor in progress:
        dtype = tensor.tensor_type.name
        try:
            # A damaged scale overflows here; the check below names the tensor.
            with np.errstate(over="ignore", invalid="ignore"):
                values = dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError:
            raise WeightsError(
                f"{tensor.name} in {name} is stored as {dtype}, which is not read; choose a GGUF without it"
            ) from None
        if not np.isfinite(values).all():
            raise WeightsError(f"{tensor.name} in {name} holds NaN or infinity; fetch the file again or choose another")
        key = renamed[tensor.name]
        if values.shape != shapes[key]:
            raise WeightsError(
                f"{tensor.name} in {name} has the shape {values.shape}, but its metadata asks for "
                f"{shapes[key]}; fetch the file again or choose another"
            )
        values = processor.process(weights=values, name=tensor.name).weights
        tensors[key] = torch.from_numpy(np.require(values, np.float32, ["C", "W"]))
        stored[key] = {"dtype": dtype, "bytes": int(tensor.n_bytes)}
    if missing := sorted(set(shapes) - set(tensors)):
        raise WeightsError(f"{name} lacks the tensor {missing[0]}; fetch the file again or choose another")
    return tensors, stored


def _renamed(architecture: str, layers: int, names: list[str]) -> dict[str, str]:
    """The names in transformers by the names in a GGUF."""
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

    kinds = {name: kind for kind, name in MODEL_ARCH_NAMES.items()}
    mapping = get_tensor_name_map(kinds[architecture], layers)
    return {mapping.get_name(name, try_suffixes=(".weight", ".bias")): name for name in names}
