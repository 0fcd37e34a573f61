"""What the rules share: the checked configuration, what a job is given, and who may pass the gate without a job."""

import hashlib
import inspect
import json
import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

ROOT = Path(str(workflow.current_basedir)).parents[1]
LIBRARY = ROOT / "workflow"
sys.path.insert(0, str(LIBRARY))
# Scripts run in processes of their own, possibly in a conda environment where the library is not installed.
SEARCHED = os.pathsep.join(filter(None, [str(LIBRARY), os.environ.get("PYTHONPATH")]))
os.environ.update(PYTHONPATH=SEARCHED, TOKENTRAIL_RUN=str(os.getpid()))

import tokentrail.config
import tokentrail.training.settings
import tokentrail.training.text
from tokentrail import forkserver, rooms
from tokentrail.declare.settings import BRACES
from tokentrail.declared import declared_in
from tokentrail.errors import TokentrailError
from tokentrail.stages.reproduction.ledger import read_all
from tokentrail.provenance import code_hash, constant, file_hash
from tokentrail.remainder import LOST, lost_models, report_on, without
from tokentrail.runlock import hold
from tokentrail.stage import CHART_KINDS

forkserver.forget()

# The stages, those that write tables, and of these each model's own and those that wait for the gate.
STAGES = rooms.stages()
TABLES = rooms.tables()
OF_A_MODEL = [name for name in TABLES if not STAGES[name].spans_models]
GATED = [name for name in TABLES if STAGES[name].after == "gate"]

try:
    CONFIG = tokentrail.config.parse(config)
    # A mistake in a ledger is told before hours of measuring. Whether its queries ask for what tables have is looked at
    # once a run and not in each of its jobs, since it loads the declaration of every table.
    FIGURES = read_all(CONFIG.ledgers)
    if FIGURES and workflow.is_main_process:
        from tokentrail import tables
        from tokentrail.stages.reproduction.run import check

        check(FIGURES, {name: tables.frame(name, []) for name in OF_A_MODEL})
except TokentrailError as error:
    raise WorkflowError(str(error)) from None

CONFIG = without(CONFIG, {each["model"] for each in LOST})
RESULTS = f"results/{CONFIG.run}"
LOGS = f"logs/{CONFIG.run}"
MODELS = list(CONFIG.models)

# A chart's module declares the tables that it draws. The declarations are read, not run: a workflow is parsed often,
# and importing altair takes longer than everything else here.
CHART_MODULES = rooms.charts()
CHART_TABLES = {name: constant(path, "TABLES") for name, path in CHART_MODULES.items()}


wildcard_constraints:
    model="|".join(map(re.escape, MODELS)),
    chart="|".join(map(re.escape, CHART_TABLES)) or "(?!)",


def hold_results():
    """Keep a second run out of the results folder for as long as this process lives."""
    if LOST:
        return  # the run that started this one holds them, and has handed its hold on
    try:
        hold(Path(RESULTS))
    except TokentrailError as error:
        raise WorkflowError(str(error)) from None


def serve_scripts():
    """Have scripts forked from a process that has imported what they import, where they run here and in its environment."""
    if workflow.local_exec and not workflow.deployment_settings.deployment_method:
        forkserver.start()


def report_on_the_rest():
    """After a run that lost models: the report and charts of the others, which begin by saying which and why.

    Only a run that was to make the report, went on after the failure and was not interrupted leaves one.
    """
    asked = any(job.rule.name == "report" for job in workflow.dag.needrun_jobs())
    went_on = (
        workflow.execution_settings.keep_going and not workflow.scheduler._user_kill
    )
    lost = lost_models(workflow.scheduler.failed)
    if asked and went_on and lost and not LOST:
        kept = [
            model for model in MODELS if all(each["model"] != model for each in lost)
        ]
        methods = workflow.deployment_settings.deployment_method
        options = [
            "--cores",
            str(workflow.cores),
            "--snakefile",
            workflow.main_snakefile,
        ]
        options += ["--sdm", *map(str, methods)] if methods else []
        report_on(kept, lost, dict(config), options, f"{RESULTS}/report.html")


def stage_job(stage, model):
    """What a stage's script is given: the entries of the configuration that it uses, and the hash of its code."""
    script = ROOT / "scripts" / f"{stage}.py"
    return {
        "stage": stage,
        "timed": STAGES[stage].timed,
        "settings": tokentrail.config.settings(CONFIG, stage, model),
        "code": code_hash(
            script,
            also=tokentrail.config.code(CONFIG, stage, model),
            table=declared_in(stage),
        ),
    }


def job(stage):
    """`stage_job` as a function of the wildcards, for a rule's params."""
    return lambda wildcards: stage_job(stage, wildcards.model)


def every_core(wildcards):
    """All cores that this run may use, so that a job runs alone. Asked late: a dry run may not say how many."""
    return workflow.cores


def chart_job(wildcards):
    """What the chart script is given; the caption is for snakemake's own report."""
    path = CHART_MODULES[wildcards.chart]
    drawn_by = rooms.module_name(path)
    return {
        "stage": "chart",
        "settings": tokentrail.config.chart_settings(CONFIG) | {"module": drawn_by},
        "code": code_hash(ROOT / "scripts" / "chart.py", also=[drawn_by]),
        "caption": inspect.cleandoc(constant(path, "CAPTION")),
    }


def spanning_job(stage):
    """`stage_job` of a stage that spans models."""
    return stage_job(stage, None)


def report_job(wildcards):
    """What the report script is given; the page's templates are code as well."""
    templates = sorted(
        file
        for folder in ("report", "stages")
        for file in (LIBRARY / "tokentrail" / folder).rglob("*")
        if file.suffix in (".html", ".css")
    )
    says = [
        rooms.module_name(path)
        for path in sorted(rooms.HERE.glob("*/*.py"))
        if path.name in ("room.py", "section.py")
    ]
    return {
        "stage": "report",
        "settings": tokentrail.config.report_settings(CONFIG)
        | {"charts": f"{RESULTS}/charts", "lost": LOST},
        "code": code_hash(ROOT / "scripts" / "report.py", also=says),
        "templates": [file_hash(file) for file in templates],
    }


def of_all_models(stages):
    """The tables of these stages, by stage, for every model in the configuration's order."""
    return {
        stage: (
            f"{RESULTS}/{stage}.parquet"
            if STAGES[stage].spans_models
            else [f"{RESULTS}/{model}/{stage}.parquet" for model in MODELS]
        )
        for stage in stages
    }


def chart_inputs(wildcards):
    return of_all_models(CHART_TABLES[wildcards.chart])


def source_files(model):
    """Files of this machine that a model is made from, to notice when one changes; none for most kinds of source."""
    files = set(map(str, CONFIG.models[model].source.watched()))
    if braced := [file for file in files if BRACES.search(file)]:
        raise WorkflowError(
            f"{braced[0]} of models.{model} has braces in its name, which snakemake reads as a wildcard; "
            "rename the file"
        )
    return sorted(files)


for model in MODELS:
    source_files(model)  # a name that cannot be an input is told before anything runs


def passage_files():
    """The passages of quantization, to notice when one is edited; one that is missing is named by the stage."""
    named = CONFIG.stages.quantization.passages.values()
    return [file for file in named if Path(file).is_file()]


def admission(model, stage):
    """What is admitted: a stage with these settings and this code, on weights made with these settings and code."""
    asked = [stage_job("weights", model), stage_job(stage, model)]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def is_admitted(model, stage):
    """Whether the stage, as it is now, has already been through the gate on the weights that are there now."""
    ticket = Path(RESULTS, "admitted", model, f"{stage}.txt")
    weights = Path(RESULTS, model, "weights.parquet")
    try:
        made = weights.stat().st_mtime_ns
        return (
            ticket.read_text().strip() == admission(model, stage)
            and made <= ticket.stat().st_mtime_ns
            and all(
                Path(file).stat().st_mtime_ns <= made for file in source_files(model)
            )
        )
    except OSError:
        return False


# What a model's pass is judged by: its files, and what the gate reads.
JUDGED = {"weights", "parity", "parity_layers", "parity_gate"}


def is_judged_anew():
    """Whether this run was told to make again what a model's pass is judged by, in whichever way it was told."""
    told = workflow.dag_settings
    named = [*told.forcerun, *(told.targets if told.forcetargets else [])]
    return told.forceall or any(Path(name).stem in JUDGED for name in named)


# The gate orders jobs without being their data: a stage must not start before its model has passed, but must not
# run again only because the parity of some new prompt was measured. Snakemake has no such edge. A plain input
# reruns the stage whenever the gate reruns. `ancient` does not, but hides more than that: when a job is to run,
# snakemake looks at nothing downstream of it for reasons of its own, so a stage behind an `ancient` gate whose own
# settings changed as well is left out, silently, with all that is made from it (seen with 9.27). So the edge is
# there only when it is needed: the gate hands each stage an admission for its present settings, code and weights,
# and only stages without a valid one have a job that makes it, and thereby wait for the gate.
def before_admission(wildcards):
    """What an admission waits for: the gate, or, while it is valid, a file that nothing makes.

    Snakemake takes an existing file whose own inputs cannot be made as it is, so a valid admission has no job. It asks
    this function when all of its settings are known; when the rules are read, they are not.
    """
    if is_judged_anew() or not is_admitted(wildcards.model, wildcards.stage):
        return f"{RESULTS}/{wildcards.model}/parity.passed"
    return f"{RESULTS}/admitted/{wildcards.model}/{wildcards.stage}.is-valid"


# The reference models: what trains them, and where that leaves them.
REFERENCE = tokentrail.training.settings.read(tokentrail.training.settings.FILE)
REFERENCE_TEXT = str(tokentrail.training.text.FILE)
TRAINED = "results/reference"


wildcard_constraints:
    reference="|".join(map(re.escape, REFERENCE.models)),


def reference_job(stage, script):
    """What a reference model's script is given, as `job`; the stage is the table, page or text that it makes."""
    return lambda wildcards: {
        "stage": stage,
        "settings": tokentrail.training.settings.of_stage(
            REFERENCE, stage, getattr(wildcards, "reference", None)
        ),
        "code": code_hash(ROOT / "scripts" / f"{script}.py", table=declared_in(stage)),
    }
