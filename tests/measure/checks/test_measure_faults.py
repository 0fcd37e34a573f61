"""The checks of columns must catch every one of these: single changes that no shape and no sum betrays."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import test_ablations_columns
import test_answers_columns
import test_attention_columns
import test_distance_columns
import test_name_swaps_columns
import test_patching_columns
import torch
from planting import Plant, instead
from tiny_models import CONFIGS, Tiny
from tokentrail.stages.ablations import measure as ablations
from tokentrail.stages.filler.distance import Stretched
from tokentrail.stages.lens import measure as lens
from tokentrail.stages.name_swaps import name_swaps
from tokentrail.stages.patching import measure as patching
from tokentrail.stages.sink import measure as sink


class Fault(NamedTuple):
    what: str
    plant: Plant
    check: object  # the test that must catch it
    complaint: str


def mean_of_all(loaded, ids):
    runs = [ablations.recorded(loaded, one) for one in ids]
    return {key: torch.cat([run[key] for run in runs], dim=-2).mean(dim=-2, keepdim=True) for key in runs[0]}


FAULTS = [
    Fault(
        "the mean over queries has the first one in it",
        instead(sink, "mean_on_first", lambda _: lambda pattern: pattern[0, :, :, 0].mean().item()),
        test_attention_columns.test_sink,
        "sink.weight_on_first of",
    ),
    Fault(
        "the distance counts from the name's first piece",
        instead(Stretched, "distance", lambda _: property(lambda self: self.ids.shape[1] - 1 - self.name[0])),
        test_distance_columns.test_filler_sweep,
        "filler_sweep.distance of",
    ),
    Fault(
        "the last position but one is left out",
        instead(patching, "is_read", lambda is_read: lambda place, tokens: is_read(place, tokens - 1)),
        test_patching_columns.test_patching,
        "rows that one side lacks",
    ),
    Fault(
        "the mean has each prompt's first position in it",
        instead(ablations, "means", lambda _: mean_of_all),
        test_ablations_columns.test_ablations,
        "operation': 'mean'",
    ),
    Fault(
        "every piece of a name is scored at the first piece's position",
        instead(
            name_swaps,
            "answer",
            lambda answer: lambda loaded, row, log_p: answer(loaded, row, log_p[:1].expand_as(log_p)),
        ),
        test_name_swaps_columns.test_name_swaps,
        "name_swaps.name_nll of",
    ),
    Fault(
        "KL is taken the other way round",
        instead(lens, "kl", lambda kl: lambda p, q: kl(q, p)),
        test_answers_columns.test_lens,
        "lens.kl_to_final of",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
@pytest.mark.parametrize("name", CONFIGS)
def test_a_fault_is_caught(folders, name, fault, monkeypatch):
    if fault.check is test_patching_columns.test_patching and name != "granite":
        pytest.skip("this model has no state whose last position is read by nobody")
    fault.plant(monkeypatch)
    with pytest.raises(AssertionError) as caught:
        fault.check(Tiny(name, folders(name)))
    assert fault.complaint in str(caught.value)
