"""Prefill, chunked prefill, decode, padding and batching are one function: they must say the same."""

from __future__ import annotations

import pytest
import torch
from tokentrail.forward.cache import KeyValues, new_cache
from tokentrail.forward.frame import forward, last
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SEVERAL = ["gpt2", "llama3-scaling", "qwen2", "qwen3", "granite-nope", "granite-two-groups", "granite-rope"]
WITHIN = 1e-5


@pytest.fixture(params=SEVERAL)
def model(request, pair):
    return pair(request.param).ours()


@pytest.fixture
def ids(model):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0, model.spec.vocabulary, (3, 90), generator=generator)


@torch.inference_mode()
def in_pieces(model, ids, sizes):
    cache = new_cache(model.spec, rows=ids.shape[0], capacity=ids.shape[1])
    parts = [forward(model, part, cache) for part in ids.split(sizes, dim=1)]
    assert cache.past == ids.shape[1]
    assert cache.lengths.tolist() == [ids.shape[1]] * ids.shape[0]
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("size", [1, 3, 8, 64, 90])
def test_pieces_of_any_length_equal_one_pass(model, ids, size):
    sizes = [size] * (90 // size) + [90 % size] * (90 % size > 0)
    with torch.inference_mode():
        whole = forward(model, ids)
    assert (in_pieces(model, ids, sizes) - whole).abs().max() < WITHIN


@pytest.mark.parametrize("sizes", [[8, 4], [8, 1, 1, 1, 1], [1, 11], [11, 1]])
def test_a_continuation_starts_from_the_stored_state(model, ids, sizes):
    with torch.inference_mode():
        whole = forward(model, ids[:, :12])
    assert (in_pieces(model, ids[:, :12], sizes) - whole).abs().max() < WITHIN


def test_a_row_does_not_depend_on_its_batch_or_padding(model, ids):
    lengths = torch.tensor([90, 17, 1])
    with torch.inference_mode():
        batch = forward(model, ids, lengths=lengths, read=last(ids, lengths))[:, 0]
        alone = [forward(model, ids[i : i + 1, :n])[0, -1] for i, n in enumerate(lengths.tolist())]
    for row, single in zip(batch, alone, strict=True):
        assert (row - single).abs().max() < WITHIN
        assert row.argmax() == single.argmax()


@pytest.mark.parametrize("steps", [[1, 1, 1], [3], [2, 4]])
def test_rows_of_unequal_length_are_continued(model, ids, steps):
    lengths, more = torch.tensor([20, 7, 1]), sum(steps)
    prompt, rest = ids[:, :20], ids[:, 20 : 20 + more]
    cache = new_cache(model.spec, rows=3, capacity=20 + more)
    with torch.inference_mode():
        forward(model, prompt, cache, lengths)
        batch = torch.cat([forward(model, part, cache) for part in rest.split(steps, dim=1)], dim=1)
        for i, n in enumerate(lengths.tolist()):
            single = forward(model, torch.cat([prompt[i : i + 1, :n], rest[i : i + 1]], dim=1))[0, -more:]
            assert (batch[i] - single).abs().max() < WITHIN
    assert cache.lengths.tolist() == [n + more for n in lengths.tolist()]


def test_unequal_continuations_of_unequal_rows(model, ids):
    first, second = torch.tensor([5, 9, 2]), torch.tensor([3, 1, 4])
    cache = new_cache(model.spec, rows=3, capacity=16)
    with torch.inference_mode():
        forward(model, ids[:, :9], cache, first)
        forward(model, ids[:, 20:24], cache, second)
        batch = forward(model, ids[:, 30:31], cache)[:, 0]
        for i in range(3):
            row = torch.cat([ids[i, : first[i]], ids[i, 20 : 20 + second[i]], ids[i, 30:31]])[None]
            assert (batch[i] - forward(model, row)[0, -1]).abs().max() < WITHIN


def test_read_picks_positions(model, ids):
    read = torch.tensor([[0, 5], [7, 7], [89, 1]])
    with torch.inference_mode():
        whole, some = forward(model, ids), forward(model, ids, read=read)
    expected = torch.stack([whole[i, read[i]] for i in range(3)])
    assert (some - expected).abs().max() < WITHIN


def test_a_full_cache_and_a_full_position_table_are_refused(pair):
    model = pair("gpt2").ours()
    ids = torch.zeros(1, 257, dtype=torch.int64)
    with pytest.raises(IndexError, match="257 tokens, but the position table has 256 rows"):
        forward(model, ids)
    cache = new_cache(model.spec, rows=1, capacity=10)
    forward(model, ids[:, :10], cache)
    with pytest.raises(IndexError, match="11 tokens, but the cache has room for 10"):
        forward(model, ids[:, :1], cache)


def test_padding_may_reach_past_the_position_table(pair):
    """Padding has no position of its own: only real tokens need a row in the table."""
    model = pair("gpt2").ours()
    cache = new_cache(model.spec, rows=2, capacity=260)
    ids = torch.ones(2, 254, dtype=torch.int64)
    with torch.inference_mode():
        forward(model, ids, cache, torch.tensor([254, 10]))
        forward(model, ids[:, :4], cache, torch.tensor([2, 4]))
    assert cache.lengths.tolist() == [256, 14]


def test_the_mamba_state_does_not_grow(pair):
    model = pair("granite-mamba-only").ours()
    small, large = (new_cache(model.spec, 1, capacity) for capacity in (8, 8000))
    assert [s.ssm.shape for s in small.states.values() if s] == [s.ssm.shape for s in large.states.values() if s]


class Largest(TorchDispatchMode):
    """The largest tensor that any operation makes anew, in numbers."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        made = operation(*args, **(kwargs or {}))
        for t in tree_leaves(made):
            if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in given:
                self.numbers = max(self.numbers, t.numel())
        return made


@pytest.mark.parametrize("rows", [1, 3])
def test_no_step_copies_the_cache(model, rows):
    ids = torch.ones(rows, 240, dtype=torch.int64)
    cache = new_cache(model.spec, rows, capacity=241)
    with torch.inference_mode():
        forward(model, ids, cache)
        places = [part.data_ptr() for state in cache.states.values() if isinstance(state, KeyValues) for part in state]
        with Largest() as largest:
            forward(model, ids[:, :1], cache)
    keys = min(state.keys.numel() for state in cache.states.values() if isinstance(state, KeyValues))
    assert 0 < largest.numbers < keys
    assert places == [
        part.data_ptr() for state in cache.states.values() if isinstance(state, KeyValues) for part in state
    ]
