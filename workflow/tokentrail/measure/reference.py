"""The reference that parity is judged by: transformers, from the same files. Imported by the parity stages alone."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import transformers
from torch import Tensor, nn

from tokentrail.errors import ParityError
from tokentrail.forward.families import modules
from tokentrail.forward.spec import Spec
from tokentrail.weights.checkpoint import Checkpoint


def open_reference(checkpoint: Checkpoint, device: torch.device | str = "cpu") -> nn.Module:
    """The checkpoint as transformers loads it: float32, eager attention, no remote code.

    Raises ParityError if transformers misses a tensor, finds one that it does not use, or sees another shape.
    """
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with as_folder(checkpoint) as folder:
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            attn_implementation="eager",
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    if trouble := {key: found for key, found in report.items() if found}:
        key, found = next(iter(trouble.items()))
        what = key.replace("_", " ")
        raise ParityError(f"transformers does not load this checkpoint whole: {what} {sorted(found)[:3]}")
    return model.eval().to(device)


@contextmanager
def as_folder(checkpoint: Checkpoint) -> Iterator[Path]:
    """The checkpoint's files under the names and in the one folder where transformers looks for them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(checkpoint.config))
        for file in checkpoint.tensor_files:
            (folder / file.name).symlink_to(file.resolve())
        if [file.name for file in checkpoint.tensor_files] != ["model.safetensors"]:
            where = {name: checkpoint.file_of(name).name for name in checkpoint.tensor_names()}
            index = {"metadata": {}, "weight_map": where}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        yield folder


def reference_logits(model: nn.Module, ids: Tensor) -> Tensor:
    """One plain uncached pass: ids (rows, tokens) -> logits (rows, tokens, vocabulary)."""
    return model(ids, use_cache=False).logits


def keeps_a_cache(model: nn.Module) -> bool:
    """Whether transformers can decode with a cache: of a model without attention, it cannot tell the length."""
    return set(getattr(model.config, "layer_types", None) or ()) != {"linear_attention"}


def cached_logits(model: nn.Module, calls: Sequence[Tensor], lengths: Tensor | None = None) -> list[Tensor] | None:
    """transformers' own cached path: ids of each call (rows, tokens) -> its logits (rows, tokens, vocabulary).

    None if transformers keeps no cache of the model.

    With lengths (rows), the rows of the first call are padded on the right, as ours are; transformers is given them
    padded on the left, with the mask and the positions that it asks for, so that each row ends in its last token.
    """
    if not keeps_a_cache(model):
        return None
    first, *rest = calls
    mask = None
    if lengths is not None:
        pads = first.shape[1] - lengths[:, None]
        columns = torch.arange(first.shape[1], device=first.device) - pads  # (rows, tokens)
        first, mask = first.gather(1, columns.clamp(min=0)), columns >= 0
    cache, out = None, []
    for ids in (first, *rest):
        placed = {}
        if mask is not None:
            if cache is not None:
                mask = torch.cat([mask, torch.ones_like(ids, dtype=torch.bool)], dim=1)
            positions = (mask.long().cumsum(dim=1) - 1).clamp(min=0)
            placed = {"attention_mask": mask.long(), "position_ids": positions[:, -ids.shape[1] :]}
        said = model(ids, cache=cache, use_cache=True, **placed)
        cache = said.cache
        out.append(said.logits)
    return out


class Transformers:
    """transformers as a contender of `measure.timing`, with `eager` or `sdpa` attention."""

    def __init__(self, model: nn.Module, attention: str):
        self.name = f"transformers {attention}"
        self.model, self.attention = model, attention
        self.cannot = "" if keeps_a_cache(model) else "transformers keeps no cache of a model without attention"

    def decode(self, ids: Tensor, steps: int):
        self.model.set_attn_implementation(self.attention)
        cache = self.model(ids, use_cache=True, logits_to_keep=1).cache
        token = ids[:, -1:]

        def prepare():
            self.model.set_attn_implementation(self.attention)
            here = copy.deepcopy(cache)  # its caches are extended in place
            return lambda: [self.model(token, cache=here, use_cache=True) for _ in range(steps)]

        return prepare

    def prefill(self, ids: Tensor):
        def prepare():
            self.model.set_attn_implementation(self.attention)
            return lambda: self.model(ids, use_cache=True, logits_to_keep=1)

        return prepare


def reference_sites(model: nn.Module, spec: Spec, ids: Tensor, see: Callable[[str, int, Tensor], None]) -> None:
    """Run the reference and show `see(site, layer, tensor)` what it computes, with the names of our sites.

    The family says which modules these are. Raises ParityError if transformers' model has no such module.
    """
    at, layers = modules(spec), len(spec.layers)
    hooks = [named(model, at.final_norm).register_forward_hook(shown("final_norm", layers, see))]
    for i, layer in enumerate(spec.layers):
        stem = f"{at.layers}.{i}"
        hooks.append(named(model, stem).register_forward_pre_hook(shown_input("resid_pre", i, see)))
        hooks.append(named(model, stem).register_forward_hook(shown("resid_post", i, see)))
        for site, name in at.sites(layer).items():
            hooks.append(named(model, f"{stem}.{name}").register_forward_hook(shown(site, i, see)))
    try:
        see("logits", layers, reference_logits(model, ids))
    finally:
        for hook in hooks:
            hook.remove()


def named(model: nn.Module, name: str) -> nn.Module:
    """The module of a model with this dotted name. Raises ParityError."""
    try:
        return model.get_submodule(name)
    except AttributeError as error:
        reference = type(model).__name__
        raise ParityError(f"transformers' {reference} has no module {name}, which its family names") from error


def shown(site: str, layer: int, see: Callable[[str, int, Tensor], None]):
    return lambda module, given, out: see(site, layer, out[0] if isinstance(out, tuple) else out)


def shown_input(site: str, layer: int, see: Callable[[str, int, Tensor], None]):
    return lambda module, given: see(site, layer, given[0])
