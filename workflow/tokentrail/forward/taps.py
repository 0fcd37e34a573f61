"""The one way to see or edit a tensor inside the pass: `tap(site, layer, tensor)`, at sites with fixed names."""

from __future__ import annotations

from torch import Tensor

SITES = (
    "embed",  # (rows, tokens, width)       token row, scaled, plus position row
    "resid_pre",  # (rows, tokens, width)   stream entering the layer
    "mixer_in",  # (rows, tokens, width)    after the norm
    "q",  # (rows, heads, tokens, head_dim)     after norm and rotation
    "k",  # (rows, kv_heads, tokens, head_dim)  after norm and rotation
    "v",  # (rows, kv_heads, tokens, head_dim)
    "pattern",  # (rows, heads, tokens, past + tokens)  attention weights; Mamba2 unrolled to the same shape
    "z",  # (rows, heads, tokens, head_dim)     per head, what the output projection reads
    "conv_out",  # (rows, tokens, conv_channels)  Mamba2: after convolution and SiLU
    "dt",  # (rows, tokens, heads)          Mamba2: step sizes, after softplus and limits
    "ssm_state",  # (rows, heads, head_dim, state_size)  Mamba2: state after the last token of the call
    "ssm_y",  # (rows, tokens, heads, head_dim)  Mamba2: scan output with the D skip, before the gated norm
    "mixer_out",  # (rows, tokens, width)   before the residual scale
    "resid_mid",  # (rows, tokens, width)
    "ffn_in",  # (rows, tokens, width)      after the norm
    "ffn_act",  # (rows, tokens, ffn width) what the output matrix reads
    "ffn_out",  # (rows, tokens, width)     before the residual scale
    "resid_post",  # (rows, tokens, width)  stream leaving the layer
    "final_norm",  # (rows, tokens, width)
    "logits",  # (rows, tokens, vocabulary)
)


class Tap:
    """Called at every site; returns the tensor to go on with. This one looks at nothing and edits nothing.

    A subclass lists in `costly` the sites that the pass only computes for those who ask: `pattern` replaces
    fused attention by an explicit softmax, and Mamba2's scan by its unrolled matrix. `layer` is the layer's
    index, -1 at `embed`, and the number of layers at `final_norm` and `logits`.
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
    """Keeps the tensors of the sites asked for, in `self.seen[site, layer]`, through `keep` if given.

    `keep` is what to store of a tensor, for example its last position; by default all of it.
    """

    def __init__(self, *sites: str, keep=lambda tensor: tensor):
        unknown = set(sites) - set(SITES)
        if unknown:
            raise ValueError(f"no such site: {', '.join(sorted(unknown))}; the sites are {', '.join(SITES)}")
        self.sites = frozenset(sites)
        self.costly = self.sites & {"pattern"}
        self.keep = keep
        self.seen: dict[tuple[str, int], Tensor] = {}

    def __call__(self, site: str, layer: int, tensor: Tensor) -> Tensor:
        if site in self.sites:
            self.seen[site, layer] = self.keep(tensor)
        return tensor
