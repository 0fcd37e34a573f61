"""The checks of columns must catch every one of these: single changes of one line that no shape and no sum betrays."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

import pytest
from house import measure_file
from mutation import mutated
from tiny_models import CONFIGS

CHECKS = [
    file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in ("conftest", Path(__file__).stem)
]


class Fault(NamedTuple):
    what: str
    stage: str
    check: str  # module and test that must catch it
    complaint: str
    old: str
    new: str
    file: str = ""  # the one that measures the stage if not given


FAULTS = [
    Fault(
        "the mean over queries has the first one in it",
        "sink",
        "attention.sink",
        "sink.weight_on_first of",
        "tensor[0, :, 1:, 0].mean()",
        "tensor[0, :, :, 0].mean()",
    ),
    Fault(
        "the distance counts from the name's first piece",
        "filler_sweep",
        "distance.filler_sweep",
        "filler_sweep.distance of",
        "- 1 - self.name[-1]",
        "- 1 - self.name[0]",
        "stages/filler/distance.py",
    ),
    Fault(
        "the last position but one is left out",
        "patching",
        "patching.patching",
        "rows that one side lacks",
        "place[2] < tokens - 1",
        "place[2] < tokens - 2",
    ),
    Fault(
        "the mean has each prompt's first position in it",
        "ablations",
        "ablations.ablations",
        "operation': 'mean'",
        "r[key][..., 1:, :]",
        "r[key][..., 0:, :]",
    ),
    Fault(
        "every piece of a name is scored at the first piece's position",
        "name_swaps",
        "name_swaps.name_swaps",
        "name_swaps.name_nll of",
        "log_p[i, piece].item() for",
        "log_p[0, piece].item() for",
    ),
    Fault(
        "KL is taken the other way round",
        "lens",
        "answers.lens",
        "lens.kl_to_final of",
        "kl(final.log_p, said.log_p)",
        "kl(said.log_p, final.log_p)",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
@pytest.mark.parametrize("name", CONFIGS)
def test_a_fault_is_caught(folders, name, fault):
    if fault.stage == "patching" and name != "granite":
        pytest.skip("this model has no state whose last position is read by nobody")
    folder = folders(name)
    module, test = fault.check.split(".")
    with mutated(fault.file or measure_file(fault.stage), fault.old, fault.new, also=CHECKS):
        tiny = importlib.import_module("tiny_models").Tiny(name, folder)
        check = getattr(importlib.import_module(f"test_{module}_columns"), f"test_{test}")
        with pytest.raises(AssertionError) as caught:
            check(tiny)
    assert fault.complaint in str(caught.value)
