"""The run on one page: what was asked, what came out, and what it shows and does not show."""

from pathlib import Path

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.report.build import build
    from tokentrail.rooms import tables

    measured = {name: job.table(name) for name in tables()}
    refused = [row for name in measured for row in job.refused(name)]
    job.write_text(build(measured, Path(job.settings["charts"]), job.settings, refused, job.settings["lost"]))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main, spans_models=True)
