"""The floors of the house: every part has one, imports run down them, and never in a circle."""

from graphlib import TopologicalSorter

import pytest
from tokentrail import architecture
from tokentrail.architecture import FLOORS, ROOT, floor_of, imports, part_of

PARTS = {name for parts in FLOORS.values() for name in parts}


def test_every_part_of_the_library_has_a_floor():
    found = {path.stem for path in (ROOT / "tokentrail").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__init__", "__pycache__"} == PARTS


@pytest.mark.parametrize("part", sorted(PARTS))
def test_imports_run_down_the_floors(part):
    upwards = [
        f"{module} imports {other}"
        for module, others in imports().items()
        if module != "tokentrail" and part_of(module) == part
        for other in others
        if floor_of(part_of(other)) > floor_of(part)
    ]
    assert upwards == []


def test_no_imports_in_a_circle():
    """Raises CycleError, which names the circle."""
    assert set(TopologicalSorter(imports()).static_order()) >= set(imports())


def test_no_room_measures_with_another():
    """What measures, draws or declares in one room is no part of another's hash."""
    crossing = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if module.startswith("tokentrail.stages.") and other.startswith("tokentrail.stages.")
        if module.split(".")[2] != other.split(".")[2]
    ]
    assert crossing == []


def test_the_picture_holds_every_part_and_its_imports():
    picture = architecture.picture()
    assert all(f"<b>{part}</b>" in picture for part in PARTS if architecture.drawn(part))
    assert "report --> rooms" in picture and "rooms --> report" not in picture
