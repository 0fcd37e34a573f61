"""What the times were taken on, and the limits that were measured there."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.timing import machine

    frame = machine.measure(job.table("timing"), job.settings)
    job.write(frame, job.weights_sha256("timing"))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
