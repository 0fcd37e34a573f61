"""The workflow as it is written: linted, complete, pinned, and usable by hand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tokentrail import tables

ROOT = Path(__file__).resolve().parents[2]


def test_every_table_has_a_rule_and_a_script():
    text = (ROOT / "workflow" / "rules" / "common.smk").read_text()
    listed = {
        stage
        for group in ("SPANNING", "UNGATED", "GATED", "DERIVED")
        for stage in re.findall(r'"(\w+)"', re.search(rf"^{group} = \[(.*?)\]", text, re.M | re.S)[1])
    }
    assert listed == set(tables.TABLES)
    assert all((ROOT / "scripts" / f"{stage}.py").is_file() for stage in listed)


def test_environments_pin_what_the_requirements_pin():
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), flags=re.M))
    for path in (ROOT / "envs").glob("*.yaml"):
        (pip,) = [entry["pip"] for entry in yaml.safe_load(path.read_text())["dependencies"] if isinstance(entry, dict)]
        for requirement in pip:
            name, version = requirement.split("==")
            assert pinned[name] == version, f"{path.name}: {requirement}"


def test_lock_holds_the_same_versions():
    def pins(name):
        return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text().lower().replace("_", "-"), flags=re.M))

    locked = pins("requirements.lock.txt")
    for name, version in (pins("requirements.txt") | pins("requirements-test.txt")).items():
        assert name == "torch" or locked[name] == version


@pytest.mark.slow
def test_lint(fresh):
    status, output = fresh.snakemake("--lint")
    assert status == 0, output


@pytest.mark.slow
def test_snakemake_report(done):
    done.run("--report", "report.html")
    text = (done.path / "report.html").read_text()
    assert "Charts" in text


@pytest.mark.slow
def test_works_from_the_workflow_folder_too(done):
    assert "Nothing to be done" in done.run("--snakefile", "workflow/Snakefile")


@pytest.mark.slow
def test_configfile_stands_alone(done):
    text = (done.path / "config" / "config.yaml").read_text()
    (done.path / "other.yaml").write_text(text)
    done.configure(lambda c: c["models"].update(gamma=c["models"]["beta"]))
    assert "Nothing to be done" in done.run("--configfile", "other.yaml")


@pytest.mark.slow
def test_script_by_hand(done):
    environment = done.environment | {"PYTHONPATH": str(done.path / "workflow")}
    arguments = ["--model", "alpha", "--output", "by_hand.parquet", "--threads", "2"]
    subprocess.run([sys.executable, "scripts/lens.py", *arguments], cwd=done.path, env=environment, check=True)
    assert (done.path / "by_hand.parquet").read_bytes() == done.tables()["alpha/lens.parquet"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "omega"], "lens: --model omega is not in config/config.yaml; it has alpha, beta"),
        (["--model", "alpha", "--config", "nowhere.yaml"], "lens: there is no configuration file at nowhere.yaml"),
    ],
)
@pytest.mark.slow
def test_mistakes_by_hand(done, arguments, sentence):
    environment = done.environment | {"PYTHONPATH": str(done.path / "workflow")}
    command = [sys.executable, "scripts/lens.py", *arguments]
    result = subprocess.run(command, cwd=done.path, env=environment, capture_output=True, text=True)
    assert result.returncode == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
