"""What is kept in the repository is what the code says now."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator
from tokentrail import config, docs, tables
from tokentrail.docs import REFERENCE_TABLES
from tokentrail.rooms import schemas
from tokentrail.stages.timing.settings import TimingStage


def test_the_kept_schema_and_what_is_generated_in_texts_are_current():
    remedy = "run `python -m tokentrail.docs`"
    assert docs.SCHEMA.read_text() == docs.schema_text(), remedy
    for path in docs.PARTS:
        assert path.read_text() == docs.with_parts(path), remedy


def test_every_key_and_every_column_is_explained():
    for line in docs.key_reference().splitlines()[2:]:
        key, kind, _, meaning = (cell.strip() for cell in line.strip("|").split(" | "))
        assert kind and meaning, key
    for schema in (*schemas().values(), *map(tables.schema_of, REFERENCE_TABLES)):
        for column in schema.column_names():
            assert f"| {column} |" in docs.data_dictionary()


@pytest.mark.parametrize("name", sorted(path.name for path in (docs.ROOT / "config").glob("*.yaml")))
def test_the_schema_is_valid_and_accepts_the_kept_configurations(name):
    import yaml

    schema = json.loads(docs.schema_text())
    Draft202012Validator.check_schema(schema)
    kept = yaml.safe_load((docs.ROOT / "config" / name).read_text())
    Draft202012Validator(schema).validate(kept)
    config.parse(kept)


def test_the_timing_configuration_runs_the_full_grid():
    kept = config.load(docs.ROOT / "config/timing.yaml").stages.timing
    assert kept.peers == ["eager", "sdpa"]
    assert kept.model_copy(update={"peers": []}) == TimingStage()


@pytest.mark.parametrize(
    "page", ["README.md", "config/README.md", "results/README.md", "resources/reference/README.md"]
)
def test_links_lead_somewhere(page):
    path = docs.ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text())
    assert all((path.parent / link).exists() for link in links)


def test_the_readme_names_every_stage_and_every_supported_family():
    from tokentrail.forward.families import FAMILIES

    readme = (docs.ROOT / "README.md").read_text()
    assert all(f"| `{table}` |" in readme for table in schemas())
    assert all(f"`{family}`" in readme for family in FAMILIES)


def test_a_readme_without_its_markers_is_refused(tmp_path, monkeypatch):
    bare = tmp_path / "README.md"
    bare.write_text("# Configuration")
    monkeypatch.setitem(docs.PARTS, bare, {"keys": docs.key_reference})
    with pytest.raises(ValueError, match="one place for its keys"):
        docs.with_parts(bare)
