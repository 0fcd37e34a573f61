"""Only what changed runs again, asserted on the jobs of a real dry run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tokentrail import rooms
from tokentrail.provenance import constant
from tokentrail.tables import read

pytestmark = pytest.mark.slow

MODELS = ("alpha", "beta")
ROOT = Path(__file__).resolve().parents[2]
ON_KING = {"lens", "attribution", "mixing", "attention", "sink", "cache", "quantization_quality", "block", "mlp"}
ON_KING |= {"positions"}
ON_CAPITAL_TOO = {"next_token", "distribution", "residual", "ablations", "patching"}
FROM_FILLERS = {"filler_sweep", "long_range"}
FROM_PROMPTS = {"tokens", "merges", "parity", "parity_layers"} | ON_CAPITAL_TOO | ON_KING
FROM_WEIGHTS = {"name_swaps", "timing", "quantization_timing", "quantization_error"}
WITHOUT_CELLS = {"weights", "cells", "census", "tokens", "merges", "geometry", "positions", "arithmetic"}
GATED = (ON_CAPITAL_TOO | ON_KING | FROM_FILLERS | FROM_WEIGHTS) - WITHOUT_CELLS
ALL = FROM_PROMPTS | GATED | WITHOUT_CELLS | {"arithmetic", "name_swaps_summary"} | set(rooms.timed())
CHARTS = {chart: constant(path, "TABLES") for chart, path in rooms.charts().items()}
ALL_CHARTS = {f"charts/{chart}" for chart in CHARTS}


def jobs_for(tables: set[str], models=MODELS) -> set[str]:
    """The jobs that make these tables of these models, and everything that follows from them."""
    if tables & {"quantization_quality", "quantization_timing"}:
        tables = tables | {"quantization"}
    expected = {f"{model}/{table}" for model in models for table in tables}
    expected |= {f"admitted/{model}/{table}" for model in models for table in tables & GATED}
    if tables & {"parity", "parity_layers"}:
        expected |= {f"{model}/parity.passed" for model in models}
    expected |= {f"charts/{chart}" for chart, drawn_from in CHARTS.items() if tables & set(drawn_from)}
    return expected | {"report"}


def touch(path: Path) -> None:
    os.utime(path)


def test_nothing_to_be_done(done):
    assert "Nothing to be done" in done.run()


def test_touching_reruns_nothing(done):
    for path in [*(done.path / "workflow").rglob("*.py"), *(done.path / "workflow").rglob("*.smk")]:
        touch(path)
    for path in [done.path / "Snakefile", done.path / "config" / "config.yaml", *done.results.rglob("*.parquet")]:
        touch(path)
    for path in (done.path / "models").rglob("*.*"):
        touch(path)
    assert done.plan() == set()


def test_one_name(done):
    done.configure(lambda c: c["stages"]["name_swaps"]["sets"]["people"]["names"].__setitem__(2, "Tim"))
    assert done.plan() == jobs_for({"name_swaps", "name_swaps_summary"})


def test_text_of_one_prompt(done):
    done.configure(lambda c: c["prompts"]["capital"].update(text="The city of the king is the"))
    assert done.plan() == jobs_for(FROM_PROMPTS - ON_KING), "the others run on another prompt, or on none"


def test_one_word(done):
    done.configure(lambda c: c["stages"]["merges"]["words"].append("queen"))
    assert done.plan() == jobs_for({"merges"})


def test_a_prompt_and_a_name_at_once(done):
    def change(config):
        config["prompts"]["king"].update(target=" king")
        config["stages"]["name_swaps"]["sets"]["people"]["names"].append("Ann")

    done.configure(change)
    assert done.plan() == jobs_for(FROM_PROMPTS | {"name_swaps", "name_swaps_summary"})


def test_a_prompt_and_a_table_made_behind_the_gate_at_once(done):
    def change(config):
        config["prompts"]["capital"].update(text="The city of the king is the")
        config["stages"]["name_swaps"]["bootstrap"]["seed"] = 1

    done.configure(change)
    assert done.plan() == jobs_for((FROM_PROMPTS - ON_KING) | {"name_swaps_summary"})


def test_one_model_added(done):
    done.configure(lambda c: c["models"].update(gamma=c["models"]["beta"] | {"label": "Gamma"}))
    assert done.plan() == jobs_for(ALL, models=["gamma"]) | ALL_CHARTS


def test_source_of_one_model(done):
    done.configure(lambda c: c["models"]["beta"].update(source={"kind": "folder", "path": "models/alpha"}))
    assert done.plan() == jobs_for(ALL, models=["beta"])


def test_weights_of_one_model(done):
    path = next((done.path / "models" / "beta").glob("*.safetensors"))
    path.write_bytes(path.read_bytes() + b"\0")
    assert done.plan() == jobs_for(ALL, models=["beta"])


def test_label_of_one_model(done):
    done.configure(lambda c: c["models"]["beta"].update(label="B"))
    assert done.plan() == ALL_CHARTS | {"report"}


def test_setting_of_one_stage(done):
    done.configure(lambda c: c["stages"]["next_token"].update(top_k=4))
    assert done.plan() == jobs_for({"next_token"})


def test_one_filler(done):
    done.configure(lambda c: c["stages"]["filler"]["fillers"].update(city="The country is the city."))
    assert done.plan() == jobs_for(FROM_FILLERS)


def test_rounds_of_timing(done):
    done.configure(lambda c: c["stages"]["timing"].update(rounds=1))
    assert done.plan() == jobs_for({"timing", "timing_summary", "machine", "cost"})


def test_price(done):
    done.configure(lambda c: c["stages"].update(cost={"price_per_hour": 2.0}))
    assert done.plan() == jobs_for({"cost"})


def test_other_cores_time_nothing_again(done):
    assert "Nothing to be done" in done.run("--cores", "2")


def test_sites_of_patching(done):
    done.configure(lambda c: c["stages"]["patching"].update(sites=["resid_pre"]))
    assert done.plan() == jobs_for({"patching"})


def test_one_scheme(done):
    done.configure(lambda c: c["stages"]["quantization"]["schemes"].update(q3={"bits": 3, "group_size": 16}))
    assert done.plan() == jobs_for({"quantization_quality"}), "what is neither packed nor in errors is measured once"


def test_text_of_a_passage(done):
    done.append("passages/king.txt", " The book is of the country.")
    admitted = {f"admitted/{model}/quantization_quality" for model in MODELS}
    assert done.plan() == jobs_for({"quantization_quality"}) - admitted, "settings and code are still those admitted"


def test_rounds_of_quantization(done):
    done.configure(lambda c: c["stages"]["quantization"]["times"].update(rounds=1))
    assert done.plan() == jobs_for({"quantization_timing"})


def test_how_codes_are_chosen(done):
    done.append("workflow/tokentrail/quantize/quantizer.py", "\nEDITED = 1\n")
    assert done.plan() == jobs_for({"quantization_quality", "quantization_timing", "quantization_error"})


def test_a_ledger_and_what_it_is_held_against(done):
    ledger, judged = done.path / "config" / "ledger.csv", {"reproduction", "charts/reproduction"}
    ledger.write_text(
        "id,stage,model,input,quantity,measured,value,tolerance_kind,tolerance\n"
        "mine,next_token,alpha,king,rank,SELECT rank FROM next_token WHERE prompt = 'king' AND is_target,-1,exact,\n"
    )
    done.configure(lambda c: c.update(ledgers=["config/ledger.csv"]))
    assert done.plan() == judged | {"report"}
    done.run()
    (figure,) = read("reproduction", done.results / "reproduction.parquet").to_dicts()
    assert figure["status"] == "differs", "no rank is below 0"
    assert done.plan() == set()

    ledger.write_text(ledger.read_text().replace(",-1,", f",{figure['measured_value']:.0f},"))
    assert done.plan() == judged | {"report"}
    done.configure(lambda c: c["stages"]["merges"]["words"].append("queen"))
    assert done.plan() == jobs_for({"merges"}) | judged


@pytest.mark.parametrize("cell", ["attention", "mamba2"])
def test_one_cell(done, cell):
    done.append(f"workflow/tokentrail/forward/cells/{cell}.py", "\nEDITED = 1\n")
    assert done.plan() == jobs_for(ALL - WITHOUT_CELLS)


def test_one_measure(done):
    done.append("workflow/tokentrail/stages/residual/measure.py", "\nEDITED = 1\n")
    assert done.plan() == jobs_for({"residual"})


def test_how_edits_are_applied(done):
    done.append("workflow/tokentrail/intervene/edits.py", "\nEDITED = 1\n")
    assert done.plan() == jobs_for({"ablations", "patching", "filler_sweep", "sink", "lens"})


def test_how_times_are_summed_up(done):
    done.append("workflow/tokentrail/stages/timing/timing_summary.py", "\nEDITED = 1\n")
    assert done.plan() == jobs_for({"timing_summary", "machine", "cost"})


def test_one_script(done):
    done.append("scripts/distribution.py", "\nEDITED = 1\n")
    assert done.plan() == jobs_for({"distribution"})


def test_one_chart(done):
    done.append("workflow/tokentrail/stages/lens/chart.py", "\nEDITED = 1\n")
    assert done.plan() == {"charts/lens", "report"}


@pytest.mark.parametrize(
    "file", ["report/build.py", "report/page.css", "stages/sink/section.py", "stages/sink/section.html"]
)
def test_report(done, file):
    done.append(f"workflow/tokentrail/{file}", "\nEDITED = 1\n" if file.endswith(".py") else "\n")
    assert done.plan() == {"report"}


def test_deleted_table_is_made_again(done):
    (done.results / "alpha" / "census.parquet").unlink()
    assert "alpha/census" in done.plan()


def test_failing_gate_stops_what_needs_it_and_leaves_its_tables(done):
    """A prompt is changed while nothing can pass; then both are taken back."""
    before = done.tables(timed=True)

    def change(config):
        config["prompts"]["king"]["text"] = "The king gave the book to the"
        config["stages"]["parity"] = {"tolerance": 1e-12}

    original = (done.path / "config" / "config.yaml").read_text()
    done.configure(change)
    status, output = done.snakemake("results/tiny/alpha/next_token.parquet", "results/tiny/alpha/name_swaps.parquet")
    assert status == 1
    assert "parity_gate of alpha: " in output
    assert "Traceback" not in output
    assert not (done.results / "alpha" / "parity.passed").exists()
    after = done.tables(timed=True)
    made = {"alpha/parity.parquet", "alpha/parity_layers.parquet"}
    assert {name for name in before if before[name] != after.get(name)} <= made
    assert before["alpha/parity.parquet"] != after["alpha/parity.parquet"], "kept for inspection"
    assert "alpha/parity.passed" in done.plan(), "the gate stays shut"

    (done.path / "config" / "config.yaml").write_text(original)
    assert done.plan() == jobs_for({"parity", "parity_layers"}, models=["alpha"])


STAGES = "workflow/tokentrail/stages"


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("workflow/tokentrail/declare/columns.py", "model name, as in the configuration", "the model's name"),
        ("workflow/tokentrail/declare/columns.py", "lower end of the median's interval", "lower end of its interval"),
        (f"{STAGES}/weights/table.py", "size of the file", "its size"),
        ("workflow/tokentrail/measure/prompts.py", "The prompts of a stage", "All prompts of a stage"),
    ],
)
def test_what_only_readers_read(done, file, old, new):
    done.edit(file, old, new)
    assert done.plan() == set()


def test_what_one_table_is_checked_by(done):
    done.edit(f"{STAGES}/merges/table.py", "class Merges(Table):", "class Merges(Table):\n    _new = 1")
    assert done.plan() == jobs_for({"merges"})


FORCED = {
    "-nF": ["-nF"],
    "-n --forcea": ["-n", "--forcea"],
    "-n -R parity": ["-n", "--forcerun", "parity"],
    "-n -f the pass": ["-n", "-f", "results/tiny/alpha/parity.passed", "results/tiny/alpha/lens.parquet"],
}


@pytest.mark.parametrize("arguments", FORCED.values(), ids=FORCED)
def test_a_forced_run_goes_through_the_gate(done, arguments):
    assert gates(done.run(*arguments)) >= {"alpha"}


def test_a_run_forced_by_a_profile_goes_through_the_gate(done):
    (done.path / "forced").mkdir()
    (done.path / "forced" / "config.yaml").write_text("forceall: true\n")
    assert gates(done.run("-n", "--profile", "forced")) == set(MODELS)


THROUGH_THE_API = """
from pathlib import Path
from snakemake.api import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings, SnakemakeApi
with SnakemakeApi(OutputSettings(dryrun=True)) as api:
    workflow = api.workflow(ResourceSettings(cores=1), config_settings=ConfigSettings(), snakefile=Path("Snakefile"))
    workflow.dag(DAGSettings(forceall=True)).execute_workflow(executor="dryrun")
"""


def test_a_run_forced_through_the_api_goes_through_the_gate(done):
    command = [sys.executable, "-c", THROUGH_THE_API]
    output = subprocess.run(command, cwd=done.path, env=done.environment, capture_output=True, text=True, check=True)
    assert gates(output.stdout + output.stderr) == set(MODELS)


def gates(output: str) -> set[str]:
    """The models whose stages a dry run admits anew, each after the gate."""
    waiting = re.findall(r"input: results/tiny/(\w+)/parity\.passed\n    output: results/tiny/admitted/", output)
    return set(waiting)
