"""Every stored tensor, counted by family: where the parameters are."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.census import measure as census
    from tokentrail.weights.checkpoint import open_checkpoint

    checkpoint = open_checkpoint(job.table("weights"))
    job.write(census.measure(checkpoint, job.settings), checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
