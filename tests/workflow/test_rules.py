"""The workflow as it is written: linted, complete, pinned, and usable by hand."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tokentrail.rooms import charts, module_name, stages

ROOT = Path(__file__).resolve().parents[2]


def test_every_stage_has_a_rule_and_a_script():
    rules = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    ruled = set(re.findall(r"^rule (\w+):", rules, re.MULTILINE))
    assert set(stages()) <= ruled
    assert all((ROOT / "scripts" / f"{stage}.py").is_file() for stage in stages())


def test_environments_pin_what_the_requirements_pin():
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), flags=re.M))
    for path in (ROOT / "envs").glob("*.yaml"):
        (pip,) = [entry["pip"] for entry in yaml.safe_load(path.read_text())["dependencies"] if isinstance(entry, dict)]
        for requirement in pip:
            name, version = requirement.split("==")
            assert pinned[name] == version, f"{path.name}: {requirement}"


ONLY_WHAT_IS_THERE = """
import ast, importlib, importlib.abc, pathlib, runpy, sys
elsewhere = set(sys.argv[1].split(","))

class Elsewhere(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in elsewhere:
            raise ModuleNotFoundError(f"{name} is not in the environment", name=name)

sys.meta_path.insert(0, Elsewhere())
for script in sys.argv[2:]:
    if not script.endswith(".py"):
        importlib.import_module(script)
        continue
    defined = runpy.run_path(script)
    functions = [node for node in ast.parse(pathlib.Path(script).read_text()).body if isinstance(node, ast.FunctionDef)]
    for node in [each for function in functions for each in ast.walk(function)]:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            exec(compile(ast.Module([node], []), script, "exec"), defined)
"""


def modules_beyond(requirements: list[str]) -> set[str]:
    """Modules that are installed here, but neither in these distributions nor in what they need."""
    waiting, needed = [Requirement(each) for each in requirements], set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name not in needed and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            needed.add(name)
            waiting += map(Requirement, metadata.requires(name) or [])
    own = needed | {"tokentrail"}
    found = metadata.packages_distributions().items()
    return {module for module, names in found if not own & set(map(canonicalize_name, names))}


@pytest.mark.parametrize("environment", ["tables", "torch"])
def test_an_environment_holds_what_the_scripts_of_its_rules_import(environment):
    rules = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    pairs = re.findall(r'conda:\s+"../../envs/(\w+)\.yaml"(?:(?!\nrule ).)*?script:\s+"../../(\S+)"', rules, re.DOTALL)
    scripts = [str(ROOT / script) for used, script in pairs if used == environment]
    assert len(pairs) == rules.count("script:") and len(scripts) > 5
    if environment == "tables":
        scripts += map(module_name, charts().values())
    (pip,) = [
        entry["pip"]
        for entry in yaml.safe_load((ROOT / "envs" / f"{environment}.yaml").read_text())["dependencies"]
        if isinstance(entry, dict)
    ]
    subprocess.run(
        [sys.executable, "-c", ONLY_WHAT_IS_THERE, ",".join(modules_beyond(pip)), *scripts],
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "workflow")},
    )


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
