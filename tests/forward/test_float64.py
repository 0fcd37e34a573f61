"""The float64 pass is float64 all the way: no float32 rounding is left in it."""

from __future__ import annotations

import pytest
import torch
from random_models import VARIANTS
from tokentrail.forward.frame import forward
from tokentrail.forward.taps import Tap


class Casts(Tap):
    """Rounds the stream once to float32, as a hidden cast would."""

    def __call__(self, site, layer, tensor):
        return tensor.float().double() if (site, layer) == ("mixer_in", 1) else tensor


class Dtypes(Tap):
    def __init__(self):
        self.seen = set()

    def __call__(self, site, layer, tensor):
        self.seen.add(tensor.dtype)
        return tensor


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_sites_are_float64(pair, variant):
    tap = Dtypes()
    with torch.inference_mode():
        forward(pair(variant).ours(torch.float64), pair(variant).ids, tap=tap)
    assert tap.seen == {torch.float64}


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_orders_of_summing_agree_to_float64(pair, variant):
    """One pass over all tokens against token by token: the same sums in another order."""
    from tokentrail.forward.cache import new_cache

    model, ids = pair(variant).ours(torch.float64), pair(variant).ids[:, :80]
    with torch.inference_mode():
        whole = forward(model, ids)
        cache = new_cache(model.spec, rows=2, capacity=80, dtype=torch.float64)
        steps = torch.cat([forward(model, ids[:, t : t + 1], cache) for t in range(80)], dim=1)
        cast = forward(model, ids, tap=Casts())
    assert (whole - steps).abs().max() < 1e-12
    assert (whole - cast).abs().max() > 1e-10  # one hidden cast would show
