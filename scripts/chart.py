"""One chart of the run, from the tables of all models."""

import importlib

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.charts.save import save

    module = importlib.import_module(job.settings["module"])
    tables = {name: job.table(name) for name in module.TABLES}
    (library,) = job.inputs("library")
    save(module.chart(tables, job.settings), job.outputs, library.read_text(encoding="utf-8"))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main, spans_models=True)
