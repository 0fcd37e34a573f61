"""What a million tokens cost in machine time, and how long each step is waited for."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.cost import measure as cost

    frame = cost.measure(job.table("timing_summary"), job.settings)
    job.write(frame, job.weights_sha256("timing_summary"))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
