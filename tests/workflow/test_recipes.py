"""Every recipe of CONTRIBUTING.md, carried out in a copy of the repository: the files that it names are enough."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import polars as pl
import pytest
from recipes import carry_out
from tokentrail import docs

pytestmark = pytest.mark.slow

MODELS = ("alpha", "beta")
ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "workflow/tokentrail"


def folders(files: dict[str, str]) -> set[str]:
    return {str(Path(file).parent) for file in files}


def python(checkout, *arguments: str) -> str:
    """What Python prints in the checkout, on its own library and tests."""
    searched = ":".join(str(checkout.path / part) for part in ("workflow", "tests", "tests/workflow"))
    environment = checkout.environment | {"PYTHONPATH": searched}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=checkout.path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def document(checkout) -> dict[str, str]:
    """The texts that are made in part from the code, made anew."""
    texts = [str(path.relative_to(ROOT)) for path in (*docs.PARTS, docs.SCHEMA)]
    for text in texts:
        shutil.copy2(ROOT / text, checkout.path / text)
    python(checkout, "-m", "tokentrail.docs")
    return {text: (checkout.path / text).read_text() for text in texts}


def test_a_stage_and_a_chart(done):
    """The room, script and rule, and nothing else: its own jobs run, and the report, which reads every table."""
    files = carry_out("To add a stage", done.path)
    assert folders(files) == {f"{LIBRARY}/stages/logit_range", "scripts", "workflow/rules"}
    assert folders(carry_out("To add a chart", done.path)) == {f"{LIBRARY}/stages/logit_range"}
    own = {f"{model}/logit_range" for model in MODELS} | {f"admitted/{model}/logit_range" for model in MODELS}
    assert done.plan() == own | {"charts/logit_range", "report"}
    done.run()
    table = pl.read_parquet(done.results / "alpha" / "logit_range.parquet")
    assert table.height and (table["smallest"] < table["largest"]).all()
    page = (done.results / "report.html").read_text()
    assert "Between which values the logits lie" in page and 'id="chart-logit_range"' in page
    assert done.plan() == set()
    assert all("logit_range" in text for text in document(done).values())


MAKE_NEOX = """
import sys
from pathlib import Path
sys.path.insert(0, "tests/workflow")
from conftest import make_model
make_model(Path("models/neox"), "gpt-neox")
"""


def test_a_family(done):
    """It passes parity, its faults are caught, and a small model goes through the workflow.

    What reads no Spec of a model is as it was.
    """
    assert folders(carry_out("To add a family", done.path)) == {f"{LIBRARY}/forward/families", "tests/families"}
    planned = done.plan()
    assert not {f"{model}/weights" for model in MODELS} & planned
    assert {f"{model}/parity.passed" for model in MODELS} <= planned

    shutil.copytree(ROOT / "tests", done.path / "tests", dirs_exist_ok=True)
    shutil.copy2(ROOT / "pyproject.toml", done.path)
    tests = ["tests/forward", "tests/weights/test_load.py", "-k", "neox or every_family"]
    said = python(done, "-m", "pytest", "-n0", "-vv", *tests)
    for tested in ("test_every_variant_agrees_at_every_position[plain-gpt-neox]", "test_the_gate_catches[gpt-neox: "):
        assert tested in said
    python(done, "-c", MAKE_NEOX)
    source = {"kind": "folder", "path": "models/neox"}
    done.configure(lambda c: c["models"].update(neox=c["models"]["beta"] | {"source": source, "label": "Neox"}))
    asked = {stage: done.results / "neox" / f"{stage}.parquet" for stage in ("parity", "lens", "ablations", "block")}
    done.run(*(str(path.relative_to(done.path)) for path in asked.values()))
    assert pl.read_parquet(asked["parity"])["max_abs_logit_diff"].max() < 1e-4
    assert all(pl.read_parquet(path).height for path in asked.values())
    assert "| `gpt_neox` | GPT-NeoX" in document(done)["README.md"]


def test_a_kind_of_model_source(done):
    """A model comes out of it as out of a folder, a change of its file is noticed, and no other model runs again."""
    assert folders(carry_out("To add a kind of model source", done.path)) == {f"{LIBRARY}/weights/sources"}
    assert not {job for job in done.plan() if job.startswith(MODELS)}
    packed = done.path / "models" / "packed.tar"
    with tarfile.open(packed, "w") as archive:
        for file in (done.path / "models" / "beta").iterdir():
            archive.add(file, file.name)
    source = {"kind": "tar", "path": "models/packed.tar"}
    done.configure(lambda c: c["models"].update(packed=c["models"]["beta"] | {"source": source, "label": "Packed"}))
    lens = [done.results / model / "lens.parquet" for model in ("beta", "packed")]
    done.run(str(lens[1].relative_to(done.path)))
    beta, same = (pl.read_parquet(path).drop("model") for path in lens)
    assert beta.equals(same)
    packed.write_bytes(packed.read_bytes() + bytes(10240))
    assert "packed/weights" in done.plan()
    assert any("(tar).path" in text for text in document(done).values())
