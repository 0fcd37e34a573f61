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
from tokentrail.weights import blobs, gguf_config, gguf_tokenizer
from tokentrail.weights.blobs import Blob

CONVERTER = "1"  # raise it whenever the derived files would come out different


def convert(parts: list[Blob]) -> tuple[list[Blob], dict[str, Any]]:
    """The derived files of a GGUF, and what it states: `{"dtypes": [...], "license": ...}`.

    `parts` are the files that it comes in, in their order; mostly there is one. Files that this version derived before
    from the same content are found again; otherwise they are made, byte for byte the same each time. Raises
    WeightsError if the file is damaged or holds a NaN, or if its architecture, tokenizer or a key or tensor in it is
    not supported.
    """
    key = f"gguf {' '.join(part.sha256 for part in parts)} converter {CONVERTER}"
    with blobs.lock(key):
        known = blobs.recall(key)
        files = [blobs.find(name, sha256) for name, sha256 in known.get("files", {}).items()]
        if not files or None in files:
            files, known = _convert(parts)
            blobs.remember(key, known)
    return files, known


def _convert(parts: list[Blob]) -> tuple[list[Blob], dict[str, Any]]:
    from safetensors.torch import save_file
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    readers, source = [_open(part) for part in parts], parts[0]
    stated = [{name: field.contents() for name, field in reader.fields.items()} for reader in readers]
    metadata = stated[0]
    if "general.architecture" not in metadata:
        raise WeightsError(f"{source.name} states no general.architecture; fetch it again or choose another")
    _check_parts(parts, stated)
    entries = [tensor for reader in readers for tensor in reader.tensors]
    # The small parts come first: they refuse most of what is not supported, and the tensors take long.
    config = gguf_config.build(metadata, {tensor.name for tensor in entries}, source.name)
    tokenizer = gguf_tokenizer.build(metadata, GGUF_PRE_TOKENIZER_SPLITS, source.name)
    tensors, stored = _tensors(entries, config, metadata["general.architecture"], source.name)
    with blobs.disk_errors(f"the tensors of {source.name}"), blobs.staging() as folder:
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        # Only one key: the library writes several in a random order, and the file's hash must not vary.
        save_file(tensors, folder / "model.safetensors", metadata={"stored": json.dumps(stored, sort_keys=True)})
        names = ("config.json", "model.safetensors", "tokenizer.json")
        files = [blobs.store(folder / name, name, how="move") for name in names]
    blobs.note(files[1], {"dtypes": ["F32"]})
    license = metadata.get("general.license")
    return files, {
        "files": {blob.name: blob.sha256 for blob in files},
        "dtypes": sorted({entry["dtype"] for entry in stored.values()}),
        "license": license if isinstance(license, str) else "",
    }


def _open(source: Blob):
    from gguf import GGUFReader

    try:
        return GGUFReader(source.path)
    except (ValueError, KeyError, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise WeightsError(
            f"{source.name} is not a GGUF file, or it is truncated or damaged ({error}); fetch it again"
        ) from None


def _check_parts(parts: list[Blob], stated: list[dict[str, Any]]) -> None:
    """Raises WeightsError unless each file says that it is this part of as many."""
    for number, (part, metadata) in enumerate(zip(parts, stated, strict=True)):
        found = metadata.get("split.no", 0), metadata.get("split.count", 1)
        if found != (number, len(parts)):
            raise WeightsError(
                f"{part.name} says that it is part {found[0] + 1} of {found[1]} of a split GGUF, but stands as part "
                f"{number + 1} of {len(parts)}; give the parts the names that llama.cpp gave them "
                f"(<name>-00001-of-{found[1]:05}.gguf), or merge them with `llama-gguf-split --merge`"
            )


def _tensors(entries: list, config: dict[str, Any], architecture: str, name: str):
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
    if unknown := [tensor.name for tensor in entries if tensor.name not in renamed]:
        raise WeightsError(
            f"{name} holds tensors that a {config['model_type']} model does not have "
            f"({', '.join(unknown[:5])}); choose a GGUF of a model without them"
        )
    tensors: dict[str, torch.Tensor] = {}
    stored: dict[str, dict[str, Any]] = {}
    progress = track(entries, f"converting {name}", console=Console(stderr=True), transient=True)
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
