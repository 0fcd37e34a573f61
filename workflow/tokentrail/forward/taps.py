"""The one way to see or edit a tensor inside the pass: `tap(site, layer, tensor)`, at sites with fixed names."""

from __future__ import annotations

from torch import Tensor

from tokentrail.errors import UnsupportedError

SITES = {  # in the order of the pass, with the axes of the tensor there
    "token_rows": ("rows", "tokens", "width"),  # scaled
    "position_rows": ("rows", "tokens", "width"),  # where there is a table of positions
    "embed": ("rows", "tokens", "width"),  # token row, scaled, plus position row
    "resid_pre": ("rows", "tokens", "width"),  # stream entering the layer
    "mixer_in": ("rows", "tokens", "width"),  # after the norm
    "qkv": ("rows", "tokens", "channels"),  # attention: q of all heads, then k, then v
    "qk": ("rows", "heads and kv_heads", "tokens", "head_dim"),  # before norm and rotation
    "q": ("rows", "heads", "tokens", "head_dim"),  # after norm and rotation
    "k": ("rows", "kv_heads", "tokens", "head_dim"),  # after norm and rotation
    "v": ("rows", "kv_heads", "tokens", "head_dim"),
    "scores": ("rows", "heads", "tokens", "past + tokens"),  # q @ k, scaled, of all pairs
    "in_proj": ("rows", "tokens", "channels"),  # Mamba2: gate, then x | B | C, then dt
    "gate": ("rows", "tokens", "inner"),
    "conv_in": ("rows", "tokens", "conv_channels"),
    "conv_out": ("rows", "tokens", "conv_channels"),  # after convolution and SiLU
    "ssm_x": ("rows", "tokens", "heads", "head_dim"),
    "B": ("rows", "tokens", "groups", "state_size"),
    "C": ("rows", "tokens", "groups", "state_size"),
    "dt": ("rows", "tokens", "heads"),  # step sizes, after softplus and limits
    "pattern": ("rows", "heads", "tokens", "past + tokens"),  # attention weights; Mamba2 unrolled to the same shape
    "ssm_state": ("rows", "heads", "head_dim", "state_size"),  # Mamba2: state after the last token of the call
    "ssm_y": ("rows", "tokens", "heads", "head_dim"),  # Mamba2: scan output with the D skip, before the gated norm
    "gated": ("rows", "tokens", "inner"),  # Mamba2: times SiLU of the gate
    "z": ("rows", "heads", "tokens", "head_dim"),  # per head, what the output projection reads
    "mixer_out": ("rows", "tokens", "width"),  # after a norm, if one stands there, and before the residual scale
    "resid_mid": ("rows", "tokens", "width"),  # between two steps of the layer, if it has two
    "ffn_in": ("rows", "tokens", "width"),  # after the norm
    "ffn_up": ("rows", "tokens", "channels"),  # gate, then up, where there is a gate
    "ffn_act": ("rows", "tokens", "ffn width"),  # what the output matrix reads
    "ffn_out": ("rows", "tokens", "width"),  # as mixer_out
    "resid_post": ("rows", "tokens", "width"),  # stream leaving the layer
    "final_norm": ("rows", "tokens", "width"),
    "logits": ("rows", "tokens", "vocabulary"),
}
COSTLY = frozenset({"scores", "pattern"})


class Tap:
    """Called at every site; returns the tensor to go on with. This one looks at nothing and edits nothing.

    A subclass lists in `costly` the sites that the pass only computes for those who ask: any of them replaces
    fused attention by an explicit softmax, and Mamba2's scan by its unrolled matrix. `layer` is the layer's
    index, -1 up to `embed`, and the number of layers at `final_norm` and `logits`.
    """

    costly: frozenset[str] = frozenset()

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        return tensor


NO_TAP = Tap()


class Chain(Tap):
    """Several taps, one after the other: each sees what those before it made."""

    def __init__(self, *taps: Tap):
        self.taps = taps
        self.costly = frozenset().union(*(tap.costly for tap in taps))

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        for tap in self.taps:
            tensor = tap(site, layer, tensor)
        return tensor


class Record(Tap):
    """Keeps the tensors of one pass at the sites asked for, in `self.seen[site, layer]`, in the order of the pass.

    `keep` is what to store of a tensor, for example its last position; by default all of it. Raises UnsupportedError
    where a layer comes to a site twice, as with two mixers that both have it: which one is meant nobody can tell.
    """

    def __init__(self, *sites: str, keep=lambda tensor: tensor):
        unknown = set(sites) - set(SITES)
        if unknown:
            raise ValueError(f"no such site: {', '.join(sorted(unknown))}; the sites are {', '.join(SITES)}")
        self.sites = frozenset(sites)
        self.costly = self.sites & COSTLY
        self.keep = keep
        self.seen: dict[tuple[str, int], Tensor] = {}

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        if site in self.sites:
            if (site, layer) in self.seen:
                raise UnsupportedError(f"layer {layer} comes to the site {site} twice, so it cannot be recorded")
            self.seen[site, layer] = self.keep(tensor)
        return tensor
