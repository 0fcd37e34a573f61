"""Times as medians with percentiles, and the share of the machine's limits that they reach."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.timing import timing_summary

    frame = timing_summary.measure(job.table("timing"), job.settings)
    job.write(frame, job.weights_sha256("timing"))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
